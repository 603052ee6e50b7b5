"""Steps between numbers of each format."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.comparer.inside import part

floats = part("judging.floats")
TYPES: dict[str, Any] = {
    "float64": numpy.float64,
    "float32": numpy.float32,
    "float16": numpy.float16,
}
WIDTHS = {"float64": 64, "float32": 32, "float16": 16}


def steps(one: float, other: float, dtype: str) -> int:
    pair = [numpy.array([number], dtype=numpy.float64) for number in (one, other)]
    return int(floats.steps_between(*pair, dtype)[0])


def bfloat16(bits: int) -> float:
    return float(floats.widened(numpy.array([bits], dtype=numpy.uint16), "bfloat16")[0])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, float, float]:
    dtype = draw(st.sampled_from(sorted(WIDTHS)))
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=WIDTHS[dtype])  # type: ignore[arg-type]
    return dtype, draw(numbers), draw(numbers)


@pytest.mark.slow
@given(pairs())
def test_steps_are_symmetric_and_zero_only_between_equals(case: tuple[str, float, float]) -> None:
    dtype, one, other = case
    assert steps(one, other, dtype) == steps(other, one, dtype)
    assert (steps(one, other, dtype) == 0) == (one == other)


@pytest.mark.slow
@given(pairs())
def test_steps_add_up_over_zero(case: tuple[str, float, float]) -> None:
    dtype, one, other = case
    apart = steps(-abs(one), abs(other), dtype)
    assert apart == steps(0.0, abs(one), dtype) + steps(0.0, abs(other), dtype)


@each("dtype", sorted(TYPES))
@each("number", [0.0, 1.0, -1.0, 0.1, 3e-5])
def test_neighbours_are_one_step_apart(dtype: str, number: float) -> None:
    kind = TYPES[dtype]
    here = kind(number)
    up = numpy.nextafter(here, kind(numpy.inf))
    assert steps(float(here), float(up), dtype) == 1


@given(st.integers(0, 0x7F7F), st.integers(0, 0x7F7F))
def test_steps_of_bfloat16_are_differences_of_its_bits(one: int, other: int) -> None:
    assert steps(bfloat16(one), bfloat16(other), "bfloat16") == abs(one - other)


def test_bfloat16_is_rounded_to_the_even_of_two_that_are_as_near() -> None:
    halfway = (bfloat16(0x3F80) + bfloat16(0x3F81)) / 2
    assert steps(halfway, bfloat16(0x3F80), "bfloat16") == 0
    assert steps((bfloat16(0x3F81) + bfloat16(0x3F82)) / 2, bfloat16(0x3F82), "bfloat16") == 0


@each(
    ("name", "bits", "smallest"),
    [
        # The bits of a fraction, of which the first is not stored.
        ("float64", 53, float(numpy.finfo(numpy.float64).tiny)),
        ("float32", 24, float(numpy.finfo(numpy.float32).tiny)),
        ("tf32", 10, float(numpy.finfo(numpy.float32).tiny)),  # 11, but it does not round
        ("float16", 11, float(numpy.finfo(numpy.float16).smallest_subnormal)),
        ("bfloat16", 8, float(numpy.finfo(numpy.float32).tiny)),
    ],
)
def test_the_precision_of_each_format(name: str, bits: int, smallest: float) -> None:
    assert floats.FORMATS[name] == (name, 0.5**bits, smallest)


NAN, INF = numpy.nan, numpy.inf


@each(
    ("one", "other", "expected"),
    [
        ([1.0, 1e6], [1.0 + 1e-4, 1e6], True),  # relative to the largest
        ([1.0, 1e6], [1.0 + 1e-2, 1e6], False),
        ([1.0], [1.5], False),
        ([NAN, INF, 1.0], [NAN, INF, 1.0], True),
        ([NAN, 1.0], [2.0, 1.0], False),
        ([NAN], [NAN], True),
        ([1.0], [1.0, 1.0], False),
        ([1j], [1j + 1e-12], True),
        ([1, 2], [1, 2], True),
        ([10**10, 2], [10**10, 3], False),  # whole numbers are the same only if they are equal
    ],
)
def test_two_results_are_the_same_up_to_the_order_of_sums(
    one: list[Any], other: list[Any], expected: bool
) -> None:
    assert floats.same(numpy.array(one), numpy.array(other)) is expected


def test_the_coarser_of_two_formats() -> None:
    assert floats.coarser("float32", "bfloat16") == "bfloat16"
    assert floats.coarser("float16", "bfloat16") == "bfloat16"
    assert floats.coarser("float64", "float32") == "float32"
