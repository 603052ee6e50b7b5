"""Floating-point formats: their precision, and the steps between two numbers."""

import collections

import numpy

Format = collections.namedtuple("Format", "name unit smallest")
"""`unit`: the largest relative change by rounding to nearest. `smallest`: below this number, the
format loses relative precision, or hardware replaces the number by 0."""

FORMATS = {
    "float64": Format("float64", 2.0**-53, 2.0**-1022),
    "float32": Format("float32", 2.0**-24, 2.0**-126),
    # Tensor cores truncate the low 13 bits of a float32 instead of rounding: twice the error.
    "tf32": Format("tf32", 2.0**-10, 2.0**-126),
    "float16": Format("float16", 2.0**-11, 2.0**-24),
    "bfloat16": Format("bfloat16", 2.0**-8, 2.0**-126),
}
SAME = 1e-9
"""Relative to the largest value. In float64, sums of a million numbers in another order differ by
less, and random numbers by more."""
_COARSEST_FIRST = ("bfloat16", "float16", "float32", "float64")
_PARTS = {"complex64": "float32", "complex128": "float64"}
_BITS = {
    "float64": (numpy.float64, numpy.uint64),
    "float32": (numpy.float32, numpy.uint32),
    "float16": (numpy.float16, numpy.uint16),
}


def is_floating(dtype: str) -> bool:
    return dtype in _COARSEST_FIRST or dtype in _PARTS


def is_real(dtype: str) -> bool:
    return dtype in _COARSEST_FIRST


def real_parts(array: "numpy.ndarray", dtype: str) -> "tuple[numpy.ndarray, str]":
    """Complex numbers as pairs of real ones along a last axis; others as they are."""
    if dtype in _PARTS:
        parts = _PARTS[dtype]
        return numpy.ascontiguousarray(array)[..., None].view(_BITS[parts][0]), parts
    return array, dtype


def widened(array: "numpy.ndarray", dtype: str) -> "numpy.ndarray":
    """The array as float64, which represents all numbers of these formats exactly."""
    if dtype == "bfloat16":
        wide = array.astype(numpy.uint32) << numpy.uint32(16)
        return wide.view(numpy.float32).astype(numpy.float64)
    return array.astype(numpy.float64)


def same(one: "numpy.ndarray", other: "numpy.ndarray") -> bool:
    """Whether two float64 results of one computation are the same, up to the order of sums."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc":
        return bool(numpy.array_equal(one, other))
    finite = numpy.isfinite(one)
    scale = float(numpy.abs(one[finite]).max()) if finite.any() else 0.0
    return numpy.allclose(one, other, rtol=0.0, atol=SAME * scale, equal_nan=True)


def coarser(one: str, other: str) -> str:
    """The less precise one of two formats."""
    return min(one, other, key=_COARSEST_FIRST.index)


def steps_between(one: "numpy.ndarray", other: "numpy.ndarray", dtype: str) -> "numpy.ndarray":
    """How many steps of `dtype` lie between finite numbers (as float64), as unsigned integers.

    0 if and only if the two are equal in that format; both zeros count as one number.
    """
    magnitudes = [_magnitude(numpy.abs(side), dtype) for side in (one, other)]
    same_side = numpy.signbit(one) == numpy.signbit(other)
    larger, smaller = numpy.maximum(*magnitudes), numpy.minimum(*magnitudes)
    return numpy.where(same_side, larger - smaller, larger + smaller)


def _magnitude(positive: "numpy.ndarray", dtype: str) -> "numpy.ndarray":
    """The position of a non-negative number among all such numbers of the format."""
    if dtype == "bfloat16":
        bits = positive.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
        # Round to nearest, ties to even, as frameworks do.
        odd = (bits >> numpy.uint64(16)) & numpy.uint64(1)
        return (bits + numpy.uint64(0x7FFF) + odd) >> numpy.uint64(16)
    number, as_bits = _BITS[dtype]
    return positive.astype(number).view(as_bits).astype(numpy.uint64)
