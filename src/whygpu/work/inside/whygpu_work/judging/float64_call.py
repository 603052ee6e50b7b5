"""Runs a function of arrays in float64, and measures how far rounding changes its results.

It has no layers that could be examined one by one, so the function runs as a whole: once with its
arguments as they are, in float64, and again with every number changed as much as rounding changes
the largest sums that arrays of their shapes can make, and what each operation makes as well; see
rounding.py.
"""

import sys

import numpy

from ..lanes import host_arrays
from . import floats, inner_rounding, rounding
from .float64_keras import CannotLift

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from ..lanes.recording import Recording, Writer


class LiftedCall(object):
    """A user's function with the arguments that all lanes get."""

    def __init__(self, function: "Callable[..., Any]", arguments: "Any") -> None:
        self._function = function
        self._arguments = arguments
        self._leaves = [leaf for _, leaf in host_arrays.named(arguments, "argument")]

    def record(self, writer: "Writer", lane: "Recording") -> None:
        """`lane` is the Recording of a lane; it has the precision that lanes compute in."""
        dtypes = {tensor.dtype for tensor in lane.tensors.values()}
        known = [name for name in floats.FORMATS if name in dtypes]
        precision = max(known or ["float32"], key=lambda name: floats.FORMATS[name].unit)
        arrays = [host_arrays.plain(leaf) for leaf in self._leaves]
        record(self._call, arrays, precision, writer)

    def _call(self, arrays: "Iterable[numpy.ndarray]") -> "list[tuple[str, numpy.ndarray]]":
        given = iter([_as(leaf, array) for leaf, array in zip(self._leaves, arrays)])
        result = self._function(*host_arrays.replaced(self._arguments, given))
        named = host_arrays.named(result, "output")
        return [(name, numpy.asarray(host_arrays.plain(leaf))) for name, leaf in named]


def _as(leaf: "Any", array: "numpy.ndarray") -> "Any":
    """The array in the form that the function got: a tensor of its framework, or a number."""
    kind = type(leaf).__module__.split(".")[0]
    if array.dtype.kind != "f":
        return leaf
    if isinstance(leaf, float):
        return float(array)
    if kind == "torch":
        return sys.modules["torch"].as_tensor(array)
    if kind == "tensorflow":
        return sys.modules["tensorflow"].convert_to_tensor(array)
    if kind in ("jax", "jaxlib"):
        return sys.modules["jax"].numpy.asarray(array)
    return array


def record(
    call: "Callable[[Any], list[tuple[str, numpy.ndarray]]]",
    arguments: "Any",
    precision: str,
    writer: "Writer",
) -> None:
    """Write what `call(arrays)` returns for float64 arrays as outputs, with its rounding.

    `arguments` are the arrays that lanes use, `call` gives [(name, array)]; `precision` is the one
    that lanes compute in.
    """
    wide = [_wide(array) for array in arguments]
    exact = call(wide)
    _check(exact)
    _check_repeats(exact, dict(call(wide)))
    reduction = largest_sum([array.shape for array in arguments])
    size = rounding.amplitude(precision, reduction)
    one = rounding.amplitude(precision, 1)
    random = numpy.random.RandomState(0)

    def move(array: "numpy.ndarray", is_sum: bool) -> "numpy.ndarray":
        return rounding.moved(array, size if is_sum else one, random)

    samples = []
    for _ in range(rounding.SAMPLES):
        with inner_rounding.changed(inner_rounding.loaded(), move):
            samples.append(dict(call([_moved(array, size, random) for array in wide])))
    for name, values in exact:
        if values.dtype.kind != "f":
            writer.tensor(name, "output", values)
            continue
        moved = [sample[name] for sample in samples if _comparable(sample.get(name), values)]
        spread = rounding.spread(values, moved)
        writer.tensor(name, "output", values, rounding=(spread, reduction, precision))


def largest_sum(shapes: "Iterable[tuple[int, ...]]") -> int:
    """How many numbers are summed at most, in products with arrays of these shapes; each of them
    may be a stage on the way, and the errors of all stages add up."""
    matrices = [shape for shape in shapes if len(shape) > 1]
    longest = max([_product(shape) // max(1, min(shape)) for shape in matrices] or [1])
    vectors = max([shape[0] for shape in shapes if len(shape) == 1] or [1])
    return max(longest, vectors) * max(1, len(matrices))


def _check(exact: "Any") -> None:
    narrow = [name for name, array in exact if array.dtype.kind == "f" and array.itemsize < 8]
    if narrow:
        raise CannotLift(
            "{} is {} whatever precision the function gets".format(
                narrow[0], dict(exact)[narrow[0]].dtype.name
            )
        )
    if not any(floats.is_real(array.dtype.name) for _, array in exact):
        raise CannotLift("the function returns no floating-point numbers")


def _check_repeats(exact: "Any", again: "Any") -> None:
    """Random results would change by themselves, and that would look like rounding."""
    for name, values in exact:
        if not _comparable(again.get(name), values) or not floats.same(values, again[name]):
            raise CannotLift(
                "{} differs each time for the same arguments: the function uses random "
                "numbers".format(name)
            )


def _wide(array: "numpy.ndarray") -> "numpy.ndarray":
    return array.astype(numpy.float64) if array.dtype.kind == "f" else array


def _moved(array: "numpy.ndarray", size: float, random: "Any") -> "numpy.ndarray":
    return rounding.moved(array, size, random) if array.dtype.kind == "f" else array


def _comparable(sample: "numpy.ndarray | None", values: "numpy.ndarray") -> bool:
    return sample is not None and sample.shape == values.shape


def _product(shape: "tuple[int, ...]") -> int:
    result = 1
    for length in shape:
        result *= length
    return result
