"""How far a computation may be off because of rounding; more than that is a fault.

No constant fits all: a sum of a million products may be off by far more than one of ten, and a
computation may amplify errors of its inputs. So the computation is measured: it runs in float64,
and again with its inputs and weights changed by a relative amount of the size of rounding, each
number up or down at random. How far its results change, the *spread*, shows its sensitivity to
errors of that size, whatever it consists of.

The relative amount is `unit * sqrt(n)`: a sum of n products in floating point is off by up to
`unit * n` at worst, and by about `unit * sqrt(n)` in fact, because the single errors are as often
up as down (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019). For
products of mean m and deviation s, summed one after the other, the error has a deviation of
`unit * sqrt(n) * sqrt(y**2 / 3 + (n * s**2) / 2)`, where y is the sum: the first part is held by
`|y|`, the second by the spread, which is `unit * sqrt(n) * sqrt(n * (m**2 + s**2))` or more.
"""

import numpy

from . import floats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

SAMPLES = 3
SAFETY = 8.0
"""Errors at the worst of a million places are five deviations from the mean; functions such as exp
and tanh are computed to a few units rather than half of one; and a convolution may be computed by
Winograd's method, whose transforms are less exact than plain sums."""
COARSE_SAFETY = 2.0
"""For products of numbers that were cut to a coarser type first: what the cutting does is known
exactly, and the next coarser type, of a quarter of the precision, has to stay distinguishable."""
_BLOCK = 256
"""Products of half-precision numbers are summed in float32 over at least that many."""
_STAGES = 4
"""Intermediate results of a layer, such as the weights of attention, are rounded as well. In half
precision this matters more than sums."""
_LARGEST_AMPLITUDE = 0.125
"""A larger change would make it a different number."""


def amplitude(precision: str, reduction: float) -> float:
    """The relative size of the rounding error of a sum of `reduction` products."""
    n = float(max(1, reduction))
    if precision in ("float16", "bfloat16"):
        n = max(_STAGES, n / _BLOCK)
    return min(_LARGEST_AMPLITUDE, floats.FORMATS[precision].unit * n**0.5)


def moved(array: "numpy.ndarray", size: float, random: "Any") -> "numpy.ndarray":
    """The array with each number changed by the relative amount `size`, up or down at random.

    In addition, all of them are changed by the same amount: in a sum of numbers of one sign, the
    separate changes cancel out.
    """
    up, down = 1.0 + size, 1.0 - size
    separately = numpy.where(random.randint(0, 2, size=array.shape), up, down)
    together = up if random.randint(0, 2) else down
    return array * (separately * together)


def spread(middle: "numpy.ndarray", samples: "Iterable[numpy.ndarray]") -> "numpy.ndarray":
    """The largest distance of the samples from the middle, for each element."""
    result = numpy.zeros(middle.shape)
    with numpy.errstate(all="ignore"):
        for sample in samples:
            gap = numpy.abs(sample - middle)
            # An element that jumps (to infinity, to another choice) says nothing about rounding.
            result = numpy.maximum(result, numpy.where(numpy.isfinite(gap), gap, 0.0))
    return result


def typical(spread_: "numpy.ndarray") -> "numpy.ndarray":
    """The spread that an element may have, given those of its neighbours.

    With few samples some elements do not change by chance, and what a ReLU cuts off does not change
    at all: the level of the whole array is the minimum. Examples and channels may differ much in
    size: the level of an element is also that of its row times that of its column.
    """
    squares = spread_**2
    overall = squares.mean() ** 0.5 if squares.size else 0.0
    level = numpy.maximum(spread_, overall)
    if overall and squares.ndim > 1:
        row = _level_along(squares, 0)
        for axis in {1, squares.ndim - 1}:
            level = numpy.maximum(level, row * _level_along(squares, axis) / overall)
    return level


def _level_along(squares: "numpy.ndarray", axis: int) -> "numpy.ndarray":
    others = tuple(other for other in range(squares.ndim) if other != axis)
    return squares.mean(axis=others, keepdims=True) ** 0.5


class Allowance(object):
    """What rounding explains for each element of one array."""

    def __init__(self, own: "numpy.ndarray", products: "numpy.ndarray | None" = None) -> None:
        """`products`: what a relative error of 1 in every product would do; None where nothing is
        multiplied, or not in float32."""
        self.own = own
        self.products = products

    def joined(self, other: "Allowance") -> "Allowance":
        """For the difference of two results. Their errors are independent, so the difference is
        hardly larger than the larger of them."""
        products = None
        if self.products is not None and other.products is not None:
            products = numpy.maximum(self.products, other.products)
        return Allowance(numpy.maximum(self.own, other.own), products)

    def units(self, gap: "numpy.ndarray") -> "dict[str, Any]":
        """The largest difference in multiples of the allowance, among finite elements."""
        coarse: "dict[str, float | None]" = {"tf32": None, "bfloat16": None}
        if self.products is not None:
            for name in coarse:
                extra = COARSE_SAFETY * floats.FORMATS[name].unit * self.products
                coarse[name] = _worst(gap, self.own + extra)[0]
        return dict(coarse, own=_worst(gap, self.own)[0])

    def worst_place(self, gap: "numpy.ndarray") -> "int | None":
        return _worst(gap, self.own)[1]


def allowance(
    values: "numpy.ndarray",
    spread_: "numpy.ndarray",
    precision: str,
    reduction: float,
    products: bool,
) -> "Allowance":
    """For a result that is `values` in float64 and has this spread under rounding."""
    size = amplitude(precision, reduction)
    level = typical(spread_)
    magnitude = numpy.where(numpy.isfinite(values), numpy.abs(values), 0.0)
    own = SAFETY * (size * magnitude + level + floats.FORMATS[precision].smallest)
    multiplied = products and precision == "float32"
    return Allowance(own, magnitude + level / size if multiplied else None)


def _worst(gap: "numpy.ndarray", allowed: "numpy.ndarray") -> "tuple[float, int | None]":
    """The largest ratio and its position; numbers that are not finite are counted elsewhere.

    No difference is 0, even if nothing is allowed: in float32, that of a float64 zero is 0.
    """
    if not gap.size:
        return 0.0, None
    with numpy.errstate(all="ignore"):
        ratio = numpy.where(numpy.isfinite(gap) & (gap != 0.0), numpy.abs(gap) / allowed, 0.0)
    place = int(ratio.argmax())
    return min(1e29, float(ratio.flat[place])), place
