"""The difference between two arrays: largest difference, steps, cosine, what is not finite.

The result has the fields of whygpu.model.comparison.TensorDifference, as plain values. Arrays are
processed in pieces, so that comparing needs little memory of its own.
"""

import numpy

from . import floats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

PIECE = 1 << 15
"""Numbers at a time: intermediate results stay in the processor's cache. Pieces of a million took
three times as long."""
LARGEST = 1e29


def compare(
    name: str, kind: str, one: "numpy.ndarray", dtype_a: str, other: "numpy.ndarray", dtype_b: str
) -> "dict[str, Any]":
    """`one` and `other` are arrays as recording.py keeps them, with the names of their types."""
    result: "dict[str, Any]" = {
        "name": name,
        "kind": kind,
        "how": "not-at-all",
        "dtype_a": dtype_a,
        "dtype_b": dtype_b,
        "shape_a": list(one.shape),
        "shape_b": list(other.shape),
    }
    result.update(_NOTHING)
    floating = (floats.is_floating(dtype_a), floats.is_floating(dtype_b))
    # The bits of a bfloat16 are kept as integers.
    whole = not any(floating) and one.dtype.kind in "biu" and other.dtype.kind in "biu"
    if one.shape != other.shape or (dtype_a in _COMPLEX) != (dtype_b in _COMPLEX):
        return result
    if all(floating):
        result["how"] = "numbers"
        result.update(_numbers(one, dtype_a, other, dtype_b))
    elif dtype_a == dtype_b or whole:
        result["how"] = "exactly"
        result.update(_exactly(one, other))
    return result


_COMPLEX = ("complex64", "complex128")
_NOTHING: "dict[str, Any]" = {
    "unequal": 0,
    "max_abs": None,
    "max_rel": None,
    "max_ulp": None,
    "rms": None,
    "scale": None,
    "level": None,
    "cosine": None,
    "where": [],
    "value_a": "",
    "value_b": "",
    "nan_a": 0,
    "nan_b": 0,
    "inf_a": 0,
    "inf_b": 0,
    "not_finite_in_one": 0,
    "units": None,
    "follows": "",
    "margin": None,
}


def pieces(*arrays: "numpy.ndarray") -> "Iterator[Any]":
    """The same range of each flattened array, with the position at which it begins."""
    flat = [array.ravel() for array in arrays]
    for start in range(0, flat[0].size, PIECE):
        yield (start,) + tuple(array[start : start + PIECE] for array in flat)


def bounded(number: float) -> "float | None":
    """A number that JSON can represent; None for NaN."""
    number = float(number)
    return None if number != number else max(-LARGEST, min(LARGEST, number))


class _Sums(object):
    """Sums over the pieces of two arrays."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(
            ("unequal", "nan_a", "nan_b", "inf_a", "inf_b", "not_finite_in_one"), 0
        )
        self.finite = 0
        self.max_abs = 0.0
        self.worst: "int | None" = None
        self.max_rel, self.max_ulp, self.scale = 0.0, 0, 0.0
        self.squares = [0.0, 0.0, 0.0]  # of a, b, and a - b
        self.product = 0.0
        self.first_not_finite: "int | None" = None

    def add(self, start: int, a: "numpy.ndarray", b: "numpy.ndarray", step: str) -> None:
        """`a` and `b` are float64; `step` is the format in which steps are counted."""
        finite_a, finite_b = numpy.isfinite(a), numpy.isfinite(b)
        both = finite_a & finite_b
        if both.all():
            self._finite(start, None, a, b, step)
            return
        nan_a, nan_b = numpy.isnan(a), numpy.isnan(b)
        same = (nan_a & nan_b) | (a == b)
        odd = ~both & ~same
        self._count("nan_a", nan_a)
        self._count("nan_b", nan_b)
        self._count("inf_a", ~finite_a & ~nan_a)
        self._count("inf_b", ~finite_b & ~nan_b)
        self._count("not_finite_in_one", odd)
        self._count("unequal", odd)
        if odd.any() and self.first_not_finite is None:
            self.first_not_finite = start + int(numpy.flatnonzero(odd)[0])
        places = numpy.flatnonzero(both)
        if places.size:
            self._finite(start, places, a[both], b[both], step)

    def _count(self, name: str, truths: "numpy.ndarray") -> None:
        self.counts[name] += int(numpy.count_nonzero(truths))

    def _finite(
        self, start: int, places: "Any", a: "numpy.ndarray", b: "numpy.ndarray", step: str
    ) -> None:
        """`places`: the positions of these numbers after `start`; None if none was left out."""
        self.finite += a.size
        largest = numpy.maximum(numpy.abs(a), numpy.abs(b))
        self.scale = max(self.scale, float(largest.max()))
        gap = numpy.abs(a - b)
        at = int(gap.argmax())
        if gap[at] > self.max_abs:
            self.max_abs = float(gap[at])
            self.worst = start + (at if places is None else int(places[at]))
        squares_a = _sum_of_products(a, a)
        self.squares[0] += squares_a
        if not gap[at]:
            self.squares[1] += squares_a
            self.product += squares_a
            return
        self._count("unequal", gap)
        largest[largest == 0.0] = 1.0
        self.max_rel = max(self.max_rel, float((gap / largest).max()))
        self.max_ulp = max(self.max_ulp, int(floats.steps_between(a, b, step).max()))
        self.squares[1] += _sum_of_products(b, b)
        self.squares[2] += _sum_of_products(gap, gap)
        self.product += _sum_of_products(a, b)

    def figures(self) -> "dict[str, Any]":
        if not self.finite:
            return dict(self.counts)
        rms = [(total / self.finite) ** 0.5 for total in self.squares]
        lengths = (self.squares[0] ** 0.5) * (self.squares[1] ** 0.5)
        return dict(
            self.counts,
            max_abs=bounded(self.max_abs),
            max_rel=bounded(self.max_rel),
            max_ulp=self.max_ulp,
            scale=bounded(self.scale),
            rms=bounded(rms[2]),
            level=bounded(rms[1]),
            cosine=_cosine(self.product, lengths, rms),
        )


def _sum_of_products(a: "numpy.ndarray", b: "numpy.ndarray") -> float:
    """numpy.dot would use threads, which wait for each other on a busy machine."""
    return float(numpy.einsum("i,i->", a, b))


def _cosine(product: float, lengths: float, rms: "Sequence[float]") -> "float | None":
    if not lengths:
        # Two arrays of zeros have the same direction; zeros and anything else have none.
        return 1.0 if rms[0] == rms[1] else None
    if not lengths < float("inf"):
        return None
    return bounded(max(-1.0, min(1.0, product / lengths)))


def _numbers(
    one: "numpy.ndarray", dtype_a: str, other: "numpy.ndarray", dtype_b: str
) -> "dict[str, Any]":
    shape = one.shape
    one, real_a = floats.real_parts(one, dtype_a)
    other, real_b = floats.real_parts(other, dtype_b)
    step = floats.coarser(real_a, real_b)
    sums = _Sums()
    with numpy.errstate(all="ignore"):
        for start, a, b in pieces(one, other):
            sums.add(start, floats.widened(a, real_a), floats.widened(b, real_b), step)
    result = sums.figures()
    worst = sums.worst if sums.first_not_finite is None else sums.first_not_finite
    if worst is not None:
        result["where"] = _index(worst, one.shape)[: len(shape)]
        result["value_a"] = _number(one, real_a, worst)
        result["value_b"] = _number(other, real_b, worst)
    return result


def _number(array: "numpy.ndarray", dtype: str, place: int) -> str:
    return repr(float(floats.widened(array.flat[place : place + 1], dtype)[0]))


def _exactly(one: "numpy.ndarray", other: "numpy.ndarray") -> "dict[str, Any]":
    unequal, first = 0, None
    for start, a, b in pieces(one, other):
        odd = numpy.flatnonzero(a != b)
        unequal += int(odd.size)
        if odd.size and first is None:
            first = start + int(odd[0])
    if first is None:
        return {}
    return {
        "unequal": unequal,
        "where": _index(first, one.shape),
        "value_a": _shown(one.flat[first]),
        "value_b": _shown(other.flat[first]),
    }


def _index(place: int, shape: "tuple[int, ...]") -> "list[int]":
    return [int(part) for part in numpy.unravel_index(place, shape)] if shape else []


def _shown(value: "Any") -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
