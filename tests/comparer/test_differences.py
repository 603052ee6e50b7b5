"""Figures of the difference of two arrays."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.comparer.inside import part
from whygpu.model.codec import decode
from whygpu.model.comparison import TensorDifference

differences, discrete = part("judging.differences"), part("judging.discrete")
recording = part("lanes.recording")
numbers32 = st.lists(st.floats(width=32), min_size=1, max_size=8)


def compare(one: Any, other: Any) -> TensorDifference:
    """As it comes out of the report: through the codec."""
    sides = [value for side in (one, other) for value in recording.stored(side)]
    return decode(TensorDifference, differences.compare("x", "output", *sides))


def single(*numbers: float) -> Any:
    return numpy.array(numbers, dtype=numpy.float32)


@given(numbers32)
def test_an_array_is_equal_to_itself_whatever_it_holds(numbers: list[float]) -> None:
    found = compare(single(*numbers), single(*numbers))
    assert found.unequal == 0
    assert found.not_finite_in_one == 0
    assert found.max_abs in (0.0, None)
    assert found.max_ulp in (0, None)


@given(numbers32, st.data())
def test_the_two_sides_can_be_exchanged(numbers: list[float], data: st.DataObject) -> None:
    size = len(numbers)
    other = data.draw(st.lists(st.floats(width=32), min_size=size, max_size=size))
    one, two = compare(single(*numbers), single(*other)), compare(single(*other), single(*numbers))
    for name in ("unequal", "max_abs", "max_rel", "max_ulp", "rms", "scale", "not_finite_in_one"):
        assert getattr(one, name) == getattr(two, name)
    assert (one.nan_a, one.inf_a) == (two.nan_b, two.inf_b)
    assert one.cosine == pytest.approx(two.cosine)
    assert one.where == two.where


def test_the_worst_place_and_what_lies_there() -> None:
    one = numpy.zeros((2, 3, 4), dtype=numpy.float32)
    other = one.copy()
    other[1, 2, 3] = -0.5
    other[0, 0, 1] = 0.25
    found = compare(one, other)
    assert found.where == (1, 2, 3)
    assert (found.max_abs, found.value_a, found.value_b) == (0.5, "0.0", "-0.5")
    assert found.unequal == 2
    assert found.relative == 1.0


def test_zeros_of_either_sign_are_equal() -> None:
    assert compare(single(0.0, -0.0), single(-0.0, 0.0)).unequal == 0


def test_what_is_not_finite_is_counted_on_each_side() -> None:
    inf, nan = numpy.inf, numpy.nan
    found = compare(single(1, nan, nan, inf, inf, 2), single(1, nan, 3, inf, -inf, inf))
    assert (found.nan_a, found.nan_b, found.inf_a, found.inf_b) == (2, 1, 2, 3)
    assert found.not_finite_in_one == 3
    assert found.where == (2,)
    assert (found.value_a, found.value_b) == ("nan", "3.0")
    assert found.max_abs == 0.0


def test_nothing_finite_leaves_no_figures() -> None:
    found = compare(single(numpy.nan), single(numpy.inf))
    assert found.max_abs is None
    assert found.cosine is None
    assert found.not_finite_in_one == 1


def test_figures_that_no_report_can_hold_are_cut() -> None:
    found = compare(numpy.array([1e308]), numpy.array([-1e308]))
    assert found.max_abs == 1e29


def test_arrays_of_several_pieces() -> None:
    size = differences.PIECE + 1000
    one = numpy.ones(size, dtype=numpy.float32)
    other = one.copy()
    other[7], other[-1] = 1.5, 3.0
    found = compare(one, other)
    assert (found.where, found.max_abs, found.unequal) == ((size - 1,), 2.0, 2)
    assert found.rms == pytest.approx(((0.5**2 + 2.0**2) / size) ** 0.5)


def test_bfloat16_comes_as_bits() -> None:
    bits = numpy.array([0x3F80, 0x4000], dtype=numpy.uint16)
    near = numpy.array([0x3F81, 0x4000], dtype=numpy.uint16)
    fields = differences.compare("x", "output", bits, "bfloat16", near, "bfloat16")
    found = decode(TensorDifference, fields)
    assert (found.how, found.max_ulp, found.max_abs) == ("numbers", 1, 2.0**-7)


def test_steps_are_those_of_the_coarser_type() -> None:
    found = compare(single(1.0), numpy.array([1.0 + 2.0**-12], dtype=numpy.float64))
    assert found.max_ulp == 2**11
    assert found.max_abs == 2.0**-12


def test_whole_numbers_truths_and_text_are_compared_exactly() -> None:
    for one, other in (
        (numpy.array([1, 2]), numpy.array([1, 3])),
        (numpy.array([True, False]), numpy.array([True, True])),
        (numpy.array(["a", "b"]), numpy.array(["a", "c"])),
    ):
        found = compare(one, other)
        assert (found.how, found.unequal, found.where) == ("exactly", 1, (1,))
        assert found.max_abs is None


def test_what_cannot_be_compared() -> None:
    assert compare(single(1.0), single(1.0, 2.0)).how == "not-at-all"
    assert compare(single(1.0), numpy.array(["1.0"])).how == "not-at-all"
    assert compare(single(1.0), single(1.0).astype(numpy.complex64)).how == "not-at-all"


def test_complex_numbers_and_arrays_without_axes_or_elements() -> None:
    found = compare(numpy.array([1 + 1j]), numpy.array([1 + 1.5j]))
    assert (found.max_abs, found.where) == (0.5, (0,))
    assert compare(numpy.float32(2.0), numpy.float32(2.5)).where == ()
    assert compare(numpy.zeros((0, 3)), numpy.zeros((0, 3))).unequal == 0


def test_cosine() -> None:
    assert compare(single(1, 0), single(0, 1)).cosine == 0.0
    assert compare(single(1, 2), single(2, 4)).cosine == pytest.approx(1.0)
    assert compare(single(0, 0), single(0, 0)).cosine == 1.0
    assert compare(single(0, 0), single(0, 1)).cosine is None


def test_positions_of_largest_values_follow_from_the_values() -> None:
    a = numpy.array([[0.1, 0.5, 0.500001], [3.0, 1.0, 2.0]])
    b = numpy.array([[0.1, 0.500001, 0.5], [3.0, 1.0, 2.0]])
    choices = (a.argmax(axis=-1), b.argmax(axis=-1))
    name, margin = discrete.source_of(choices, [("noise", b, a), ("logits", a, b)])
    assert name == "logits"
    assert margin == pytest.approx(1e-6)
    top = tuple(numpy.argsort(-side, axis=-1)[:, :2] for side in (a, b))
    assert discrete.source_of(top, [("logits", a, b)])[0] == "logits"
    assert discrete.source_of((choices[0] * 0 + 1, choices[1]), [("logits", a, b)]) == ("", None)


def test_what_lies_above_a_threshold_follows_from_the_values() -> None:
    a, b = numpy.array([0.2, 0.4999, 0.9]), numpy.array([0.2, 0.5001, 0.9])
    name, margin = discrete.source_of((a > 0.5, b > 0.5), [("scores", a, b)])
    assert (name, margin) == ("scores", pytest.approx(2e-4))
