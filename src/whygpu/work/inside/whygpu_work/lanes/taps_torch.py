"""Intercepts every step of a PyTorch module.

A step is one call of one submodule. The user's own modules and lists of modules are containers:
their inner modules are the steps. Any other module of torch.nn is one step, because some of them
bypass their parts. What a user's code computes after the last inner module is a step too, with the
name of the module whose code it is.
"""

import contextlib

from .. import trees
from ..work_torch import leaves
from . import passed_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

_LOOKED_INTO = ("Sequential", "ModuleList", "ModuleDict")


@contextlib.contextmanager
def tapped(torch: "Any", module: "Any", on_step: "Callable[..., Any]") -> "Iterator[_Taps]":
    """In this context, `on_step(name, part, compute, args, kwargs)` runs the steps of `module`.

    `compute(args, kwargs)` computes the step; the result of `on_step` is passed to the next step.
    """
    original = torch.nn.Module.__call__
    taps = _Taps(torch, module, on_step)
    torch.nn.Module.__call__ = taps.around(original)
    try:
        yield taps
    finally:
        torch.nn.Module.__call__ = original


class _Taps(object):
    code_before = False
    """Whether the user's code computed an input of the step that is running."""

    def __init__(self, torch: "Any", module: "Any", on_step: "Callable[..., Any]") -> None:
        self._module = module
        self._passed_on = passed_on.PassedOn(
            lambda structure: trees.flat(structure, lambda each: isinstance(each, torch.Tensor))
        )
        self._names = {id(part): name for name, part in module.named_modules()}
        self._on_step = on_step
        self._within_step = False
        self._calls: "dict[str, int]" = {}

    def around(self, original: "Callable[..., Any]") -> "Callable[..., Any]":
        def call(part: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            if part is self._module:
                self._calls.clear()
                self._passed_on.begin((args, kwargs))
            if self._within_step:
                return original(part, *args, **kwargs)
            if not is_container(part):
                return self._step(original, part, args, kwargs)
            result = original(part, *args, **kwargs)
            if not has_code_of_its_own(part):
                return result
            return self._noted(part, _as_it_is, (result,), {})

        return call

    def _step(
        self, original: "Callable[..., Any]", part: "Any", args: "Any", kwargs: "Any"
    ) -> "Any":
        def compute(args: "Any", kwargs: "Any") -> "Any":
            self._within_step = True
            try:
                return original(part, *args, **kwargs)
            finally:
                self._within_step = False

        return self._noted(part, compute, args, kwargs)

    def _noted(
        self, part: "Any", compute: "Callable[[Any, Any], Any]", args: "Any", kwargs: "Any"
    ) -> "Any":
        self.code_before = self._passed_on.is_computed((args, kwargs))
        result = self._on_step(self._name(part), part, compute, args, kwargs)
        self._passed_on.note(result)
        return result

    def _name(self, part: "Any") -> str:
        """The name from named_modules(); with a number from the second call on."""
        name = self._names.get(id(part)) or type(part).__name__
        self._calls[name] = self._calls.get(name, 0) + 1
        count = self._calls[name]
        return name if count == 1 else "%s#%d" % (name, count)


def is_container(part: "Any") -> bool:
    """Whether a module is a container and not a step."""
    own = type(part).__module__.startswith("torch.nn.")
    if own:
        return type(part).__name__ in _LOOKED_INTO
    return next(part.children(), None) is not None


def has_code_of_its_own(container: "Any") -> bool:
    return not type(container).forward.__module__.startswith("torch.nn.")


def _as_it_is(args: "Any", kwargs: "Any") -> "Any":
    return args[0]


def precision(part: "Any", result: "Any") -> str:
    """The type that a module computes in: that of its weights, else of its result."""
    tensors = list(part.parameters()) + leaves(result)
    for each in tensors:
        if each.is_floating_point():
            return str(each.dtype).partition(".")[2]
    return "float32"


def settings(part: "Any") -> "dict[str, Any]":
    """The attributes of a module that are plain JSON values."""
    plain = (bool, int, float, str, type(None))
    found: "dict[str, Any]" = {}
    for name, value in sorted(vars(part).items()):
        if name.startswith("_") or name == "training":
            continue
        if isinstance(value, (list, tuple)) and all(isinstance(each, plain) for each in value):
            found[name] = list(value)
        elif isinstance(value, plain):
            found[name] = value
    return found
