"""Remembers what a program passed as `jit_compile` to the `compile` method of its Keras model.

Keras resolves "auto" for the devices of this machine and keeps only the result. On TensorFlow
without a GPU the result is False, so the value that was passed has to be remembered.
"""

import functools
import importlib.util
import inspect
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRAINER = "keras.src.trainers.trainer"
"""The module in which Keras 3 defines `compile`."""

_CHOICES: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def of(model: "Any") -> "Any":
    """True, False or "auto"; "auto" for a model that was not compiled."""
    return _CHOICES.get(model, "auto")


def note_from_now_on() -> None:
    """Remember it for all models compiled from now on, without importing Keras."""
    module = sys.modules.get(TRAINER)
    if module is not None:
        _watch(module)
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(object):
    """Finds the module through the other finders, and runs our code after it was executed."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != TRAINER:
            return None
        sys.meta_path.remove(self)
        spec: "Any" = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module: "Any") -> None:
                execute(module)
                _watch(module)

            spec.loader.exec_module = exec_module
        return spec


def _watch(module: "Any") -> None:
    original = module.Trainer.compile
    signature = inspect.signature(original)

    @functools.wraps(original)
    def compile(self: "Any", *arguments: "Any", **named: "Any") -> None:
        original(self, *arguments, **named)
        given = signature.bind(self, *arguments, **named).arguments
        _CHOICES[self] = given.get("jit_compile", "auto")

    module.Trainer.compile = compile
