"""Whether a program wants its Keras model compiled by XLA: what it gave as `jit_compile`.

Keras answers "auto" by this machine's devices when the model is compiled, and keeps the answer
alone. On TensorFlow it is no where there is no GPU, so that the question has to be noted.
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
"""Where Keras 3 has `compile`."""

_CHOICES: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def of(model: "Any") -> "Any":
    """True, False or "auto", which it is for a model that was not compiled."""
    return _CHOICES.get(model, "auto")


def note_from_now_on() -> None:
    """For all models that are compiled from now on; Keras is not imported for it."""
    module = sys.modules.get(TRAINER)
    if module is not None:
        _watch(module)
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(object):
    """Lets the others find the module, and adds to the end of its execution."""

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
