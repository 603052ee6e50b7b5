"""What rounding explains: sums in float32 stay within it, and small faults do not."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
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


def test_what_rounding_does_to_a_sum_grows_with_the_root_of_its_length() -> None:
    unit = 2.0**-24
    assert [rounding.amplitude("float32", n) for n in (0, 1, 100)] == [unit, unit, 10 * unit]
    # Half precision is summed in float32 over 256 products, but its stages are rounded.
    for precision, half in (("float16", 2.0**-11), ("bfloat16", 2.0**-8)):
        lengths = (1, 1024, 256 * 16)
        assert [rounding.amplitude(precision, n) for n in lengths] == [2 * half, 2 * half, 4 * half]
    assert rounding.amplitude("bfloat16", 1e12) == 0.125


def test_each_number_is_moved_up_or_down_and_all_of_them_together() -> None:
    up, down = 1.25, 0.75
    seen = set()
    for seed in range(20):
        array = numpy.full(50, 8.0)
        factors = {
            each / 8.0 for each in rounding.moved(array, 0.25, numpy.random.RandomState(seed))
        }
        assert factors in ({up * up, up * down}, {down * up, down * down})
        seen |= factors
    assert seen == {up * up, up * down, down * down}


def test_the_spread_is_the_largest_distance_and_jumps_do_not_count() -> None:
    samples = [numpy.array([1.5, numpy.inf, 3.0]), numpy.array([0.75, 2.25, numpy.nan])]
    assert rounding.spread(numpy.array([1.0, 2.0, 3.0]), samples).tolist() == [0.5, 0.25, 0.0]


def test_an_element_has_at_least_the_level_of_the_whole_array() -> None:
    assert rounding.typical(numpy.array([3.0, 4.0, 0.0, 0.0])).tolist() == [3.0, 4.0, 2.5, 2.5]
    found = rounding.typical(numpy.array([[6.0, 0.0], [8.0, 0.0]]))
    assert found.ravel().tolist() == pytest.approx([6, 5, 8, 5])
    assert rounding.typical(numpy.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert rounding.typical(numpy.zeros((0, 2))).shape == (0, 2)


@each("axes", [(0, 1, 2, 3), (0, 3, 2, 1), (0, 3, 1, 2)])
def test_an_element_that_did_not_move_has_the_level_of_its_example_and_channel(axes: Any) -> None:
    """Wherever a framework has its channels."""
    examples, channels = numpy.array([1.0, 100.0]), numpy.array([1.0, 10.0, 1000.0])
    spread = numpy.einsum("n,c->nc", examples, channels)[:, :, None, None] * numpy.ones((7, 8))
    spread[1, 2, 3, 4] = 0.0
    level = rounding.typical(spread.transpose(axes)).transpose(numpy.argsort(axes))
    if 1 in (axes[1], axes[3]):
        assert 0.9e5 < level[1, 2, 3, 4] < 1.1e5
    rest = spread > 0
    assert (level[rest] >= spread[rest]).all()


def test_a_row_and_a_column_that_are_large_allow_more_where_they_cross() -> None:
    sizes = numpy.array([1.0] * 20 + [100.0])
    spread = numpy.outer(sizes, sizes)
    spread[20, 20] = 0.0
    level = rounding.typical(spread)
    assert level[20, 20] > 5 * level[0, 0]


def test_the_allowance_of_a_difference_is_the_larger_of_two() -> None:
    one = rounding.Allowance(numpy.array([1.0, 4.0]), numpy.array([5.0, 2.0]))
    other = rounding.Allowance(numpy.array([3.0, 2.0]), numpy.array([1.0, 6.0]))
    both = one.joined(other)
    assert (both.own.tolist(), both.products.tolist()) == ([3, 4], [5, 6])
    plain = rounding.Allowance(numpy.array([3.0, 2.0]))
    assert one.joined(plain).products is None
    assert plain.joined(one).products is None
    assert plain.joined(one).own.tolist() == [3, 4]


def test_the_worst_place_is_the_one_that_is_furthest_beyond_its_own_allowance() -> None:
    allowed = rounding.Allowance(numpy.array([[8.0, 1.0], [2.0, 0.0]]))
    assert allowed.worst_place(numpy.array([[4.0, -3.0], [2.0, 0.0]])) == 1
    assert allowed.units(numpy.array([[4.0, -3.0], [2.0, 0.0]]))["own"] == 3.0
    assert allowed.units(numpy.array([[0.0, 0.0], [0.0, 1.0]]))["own"] == 1e29
    assert rounding.Allowance(numpy.ones(0)).worst_place(numpy.ones(0)) is None


def test_no_difference_is_within_an_allowance_of_nothing() -> None:
    nothing = rounding.Allowance(numpy.zeros(2), numpy.zeros(2))
    assert nothing.units(numpy.zeros(2)) == {"own": 0.0, "tf32": 0.0, "bfloat16": 0.0}


def test_an_allowance_is_made_of_size_spread_and_the_smallest_number() -> None:
    values, spread = numpy.array([0.0, 2.0, numpy.inf]), numpy.full(3, 1.0)
    unit, tiny = 2.0**-24, 2.0**-126
    found = rounding.allowance(values, spread, "float32", 1, True)
    assert found.own.tolist() == [8.0, 8.0 * (1 + 2 * unit), 8.0]
    assert found.products.tolist() == [1 / unit, 2 + 1 / unit, 1 / unit]
    still = rounding.allowance(numpy.zeros(1), numpy.zeros(1), "float32", 1, False)
    assert still.own.tolist() == [8.0 * tiny]
    assert still.products is None
    assert rounding.allowance(values, spread, "float16", 1, True).products is None


@each(
    ("names", "weights", "inputs", "outputs", "expected"),
    [
        (["Activation"], [], [(2, 3)], [(2, 3)], 16),  # a function such as exp
        (["Activation"], [], [], [], 16),
        (["Softmax"], [], [(2, 100)], [(2, 100)], 100),
        (["LayerNormalization"], [(64,), (64,)], [(2, 64)], [(2, 64)], 64),
        (["Scale"], [(64,)], [(2, 64)], [(2, 64)], 64),
        (["Dense"], [(300, 10), (10,)], [(2, 500, 300)], [(2, 500, 10)], 300),
        (["Dense"], [(1, 1)], [], [], 1),
        (["EinsumDense"], [(4, 8, 16)], [(2, 4, 8)], [(2, 16)], 32),
        (["MultiHeadAttention"], [(4, 8)], [(2, 500, 4)], [(2, 500, 8)], 500),
        (["Conv1D"], [(2, 8, 4)], [(2, 9, 8)], [(2, 8, 4)], 4 * 2 * 8),
        (["Resizing"], [], [(2, 5, 6, 3)], [(2, 50, 60, 3)], 60 * 60),
        (["UpSampling2D"], [], [(2, 5, 6, 3)], [(2, 50, 10, 3)], 50 * 50),
        (["Mine"], [(1, 1)], [(1, 10, 10)], [(1, 1)], 100),  # whatever it does, it sums all of it
        (["Mine"], [(1, 1)], [(3, 4)], [(0, 4)], 12),
        (["Dropout", "Module"], [], [(2, 100)], [(2, 100)], 1),
    ],
)
def test_how_many_products_a_layer_sums(
    names: list[str], weights: Any, inputs: Any, outputs: Any, expected: int
) -> None:
    assert reductions.reduction(names, "", weights, inputs, outputs) == expected


def test_a_softmax_behind_a_layer_without_axes_sums_nothing() -> None:
    assert reductions.reduction(["Flatten"], "softmax", [], [()], [()]) == 1


@each(
    ("names", "weights", "expected"),
    [
        (["Dense"], [(3, 4)], True),
        (["Scale"], [(3,)], False),
        (["Scale"], [], False),
        (["BatchNormalization"], [(3, 4)], False),
        (["Dot"], [], True),
        (["Einsum"], [], True),
        (["Matmul"], [], True),
        (["Conv"], [], True),
    ],
)
def test_which_layers_multiply_and_sum(names: list[str], weights: Any, expected: bool) -> None:
    assert reductions.makes_products(names, weights) is expected


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
