"""What rounding explains: sums in float32 stay within it, and small faults do not."""

from __future__ import annotations

from typing import Any

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import each
from tests.comparer.inside import part

rounding, reductions = part("judging.rounding"), part("judging.reductions")


def product(x: Any, w: Any) -> Any:
    """A matrix product, summed one by one, which is the least exact way."""
    total = numpy.zeros((x.shape[0], w.shape[1]), dtype=x.dtype)
    for k in range(x.shape[1]):
        total += x[:, k : k + 1] * w[k]
    return total


def allowance_of(x: Any, w: Any) -> tuple[Any, Any]:
    """The exact product, and what rounding explains of one in float32."""
    wide = x.astype(numpy.float64), w.astype(numpy.float64)
    n = x.shape[1]
    exact = wide[0] @ wide[1]
    size = rounding.amplitude("float32", n)
    random = numpy.random.RandomState(0)
    samples = [
        rounding.moved(wide[0], size, random) @ rounding.moved(wide[1], size, random)
        for _ in range(rounding.SAMPLES)
    ]
    spread = rounding.spread(exact, samples)
    return exact, rounding.allowance(exact, spread, "float32", n, True)


def factors(n: int, offset: float, seed: int = 1) -> tuple[Any, Any]:
    random = numpy.random.RandomState(seed)
    x = (random.standard_normal((8, n)) + offset).astype(numpy.float32)
    return x, random.standard_normal((n, 16)).astype(numpy.float32)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 600), st.floats(-5, 5), st.integers(0, 1000))
def test_sums_in_float32_are_within_it(n: int, offset: float, seed: int) -> None:
    x, w = factors(n, offset, seed)
    exact, allowed = allowance_of(x, w)
    assert allowed.units(product(x, w) - exact)["own"] < 1


@each("n", [4, 64, 600])
@each("offset", [0.0, 3.0])
def test_a_weight_that_is_off_by_a_thousandth_is_beyond_it(n: int, offset: float) -> None:
    x, w = factors(n, offset)
    exact, allowed = allowance_of(x, w)
    wrong = w.copy()
    wrong[:, 3] *= 1.001
    assert allowed.units(product(x, wrong) - exact)["own"] > 1


def cut(array: Any, bits: int) -> Any:
    """Without its low bits, as tensor cores read a float32."""
    mask = numpy.uint32((0xFFFFFFFF << bits) & 0xFFFFFFFF)
    return (array.view(numpy.uint32) & mask).view(numpy.float32)


@each("n", [8, 100, 600])
@each("offset", [0.0, 2.0])
def test_float32_tf32_and_bfloat16_are_distinguished(n: int, offset: float) -> None:
    x, w = factors(n, offset)
    exact, allowed = allowance_of(x, w)
    tf32 = allowed.units(product(cut(x, 13), cut(w, 13)) - exact)
    assert tf32["own"] > 1
    assert tf32["tf32"] < 1
    half = allowed.units(product(cut(x, 16), cut(w, 16)) - exact)
    assert half["tf32"] > 1
    assert half["bfloat16"] < 1


def test_channels_of_quite_different_sizes_do_not_hide_each_other() -> None:
    x, w = factors(100, 0.0)
    w *= numpy.logspace(-4, 4, 16, dtype=numpy.float32)
    exact, allowed = allowance_of(x, w)
    assert allowed.units(product(x, w) - exact)["own"] < 1


def test_what_is_not_finite_is_no_matter_of_size() -> None:
    allowed = rounding.Allowance(numpy.ones(3))
    assert allowed.units(numpy.array([0.5, numpy.inf, numpy.nan]))["own"] == 0.5
    assert rounding.Allowance(numpy.ones(0)).units(numpy.ones(0))["own"] == 0.0


def test_products_of_a_layer() -> None:
    def size(name: str, weights: list[Any], inputs: Any, outputs: Any, act: str = "") -> int:
        return int(reductions.reduction([name], act, weights, [inputs], [outputs]))

    assert size("Dense", [(300, 10), (10,)], (2, 300), (2, 10)) == 300
    assert size("DepthwiseConv2D", [(3, 3, 64, 1)], (2, 8, 8, 64), (2, 8, 8, 64)) == 9
    assert size("Conv2D", [(3, 3, 64, 8)], (2, 8, 8, 64), (2, 8, 8, 8)) == 4 * 9 * 64
    assert size("Conv2D", [(1, 1, 64, 8)], (2, 8, 8, 64), (2, 8, 8, 8)) == 64
    assert size("Embedding", [(50000, 8)], (2, 5), (2, 5, 8)) == 1
    assert size("GlobalAveragePooling2D", [], (2, 56, 56, 8), (2, 8)) == 56 * 56
    assert size("Dense", [(4, 1000)], (2, 4), (2, 1000), "softmax") == 1000
    assert reductions.makes_products(["MultiHeadAttention"], [])
    assert not reductions.makes_products(["Embedding"], [(50000, 8)])
