"""A function in a lane: it returns arrays in any structure, or (function, arguments)."""

import sys

from .. import loading
from ..loading import Unusable
from ..work_jax import JaxWork
from . import chosen_inputs, host_arrays
from .work import ProgramWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    import numpy

    from .sharing import Shared

EXPECTED = (
    "expected arrays (or a dictionary or list of them), a Keras model, a PyTorch module, "
    "(module, example_inputs) or (function, arguments)"
)


class CallLane(ProgramWork):
    """`function` is called repeatedly; `first` is its first result, if it was called already."""

    kind = "call"

    def __init__(
        self,
        function: "Callable[..., Any]",
        request: "dict[str, Any]",
        first: "Any" = None,
        seconds: "float | None" = None,
    ) -> None:
        super(CallLane, self).__init__()
        self._function = function
        self._first = first
        self.first_seconds = seconds
        if request["train"]:
            raise Unusable("--train trains models: expected a function that returns one")

    def call(self) -> "list[tuple[Any, ...]]":
        result = self._function() if self._first is None else self._first
        self._first = None
        self.note_devices(result)
        return host_arrays.all_on_host(result, "output")


class PairLane(CallLane):
    """A function whose arguments are known, so that they can be replaced."""

    kind = "pair"

    def __init__(
        self,
        call: "Callable[..., Any]",
        request: "dict[str, Any]",
        function: "Callable[..., Any]",
        arguments: "Any",
    ) -> None:
        super(PairLane, self).__init__(call, request)
        self.function = function
        self.arguments = arguments

    def in_float64(self) -> "Any":
        from ..judging.float64_call import LiftedCall

        return LiftedCall(self.function, self.arguments)


def of_pair(pair: "Any", request: "dict[str, Any]", shared: "Shared") -> "PairLane":
    """(function, arguments): every array among the arguments is that of the first lane."""
    function, arguments = pair
    arguments = tuple(arguments) if isinstance(arguments, (tuple, list)) else (arguments,)
    leaves = [leaf for _, leaf in host_arrays.named(arguments, "argument")]
    left = shared.bundle("inputs")
    if left is None:
        shared.leave("inputs", [host_arrays.plain(leaf) for leaf in leaves])
    else:
        same = [_like(leaf, array) for leaf, array in zip(leaves, left[0])]
        arguments = host_arrays.replaced(arguments, iter(same))
    if "jax" in sys.modules and not any(_is_of_others(leaf) for leaf in leaves):
        return PairLane(JaxWork(function, arguments).step, request, function, arguments)
    return PairLane(lambda: function(*arguments), request, function, arguments)


def _is_of_others(leaf: "Any") -> bool:
    return type(leaf).__module__.split(".")[0] in ("torch", "tensorflow")


def _like(leaf: "Any", array: "numpy.ndarray") -> "Any":
    """The array as a tensor of the same kind, on the same device, as the program's."""
    kind = type(leaf).__module__.split(".")[0]
    if kind == "torch":
        import torch

        return torch.as_tensor(array).to(leaf.device, leaf.dtype)
    if kind == "tensorflow":
        import tensorflow

        return tensorflow.convert_to_tensor(array, dtype=leaf.dtype)
    if kind in ("jax", "jaxlib"):
        import jax.numpy

        return jax.numpy.asarray(array, dtype=leaf.dtype)
    return array if hasattr(leaf, "shape") else leaf


def caller(function: "Callable[..., Any]", request: "dict[str, Any]") -> "Callable[[], Any]":
    """What calls the user's function: with arrays of --inputs, with the batch, or with nothing."""
    if request["inputs"] is not None:
        given = dict(chosen_inputs.read(request["inputs"], request["batch"]))
        if chosen_inputs.wanted_by(function, list(given)):
            return lambda: function(**chosen_inputs.chosen(function, given))
    batch = request["batch"]
    if batch is None and loading.batch_parameter(function) is not None:
        batch = DEFAULT_BATCH
    return lambda: loading.call(function, batch)


DEFAULT_BATCH = 4


def check(result: "Any", name: str) -> None:
    """Raise Unusable if it contains nothing to compare."""
    try:
        found = host_arrays.named(result, "output")
    except host_arrays.NotAnArray as error:
        raise Unusable("%s returned something else than arrays: %s; %s" % (name, error, EXPECTED))
    if not found:
        raise Unusable("%s returned nothing; %s" % (name, EXPECTED))
