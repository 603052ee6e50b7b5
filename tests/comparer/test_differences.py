"""Figures of the difference of two arrays."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
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


@pytest.mark.slow
@given(numbers32)
def test_an_array_is_equal_to_itself_whatever_it_holds(numbers: list[float]) -> None:
    found = compare(single(*numbers), single(*numbers))
    assert found.unequal == 0
    assert found.not_finite_in_one == 0
    assert found.max_abs in (0.0, None)
    assert found.max_ulp in (0, None)


@pytest.mark.slow
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


def test_figures_of_equal_and_of_unequal_pieces_are_one_figure() -> None:
    """The first piece is equal on both sides; in the two after it the same place is off."""
    one = numpy.linspace(0.5, 2.0, 3 * differences.PIECE)
    other = one.copy()
    places = [differences.PIECE + 5, 2 * differences.PIECE + 5]
    other[places] += 0.25
    found = compare(one, other)
    assert found.where == (places[0],)
    assert (found.max_abs, found.unequal, found.scale) == (0.25, 2, 2.0)
    assert found.max_rel == pytest.approx((0.25 / other[places]).max())
    assert found.rms == pytest.approx(((one - other) ** 2).mean() ** 0.5)
    assert found.level == pytest.approx((other**2).mean() ** 0.5)
    lengths = numpy.linalg.norm(one) * numpy.linalg.norm(other)
    assert found.cosine == pytest.approx(float(one @ other) / lengths, rel=1e-12)


@each("odd", [numpy.nan, 7])
def test_the_first_of_several_places_is_shown(odd: float) -> None:
    """Of numbers that are not finite, and of whole numbers, which have no largest difference."""
    dtype = numpy.float32 if odd != odd else numpy.int32
    one = numpy.zeros(3 * differences.PIECE, dtype=dtype)
    other = one.copy()
    places = [differences.PIECE + 9, differences.PIECE + 11, 2 * differences.PIECE]
    other[places] = odd
    found = compare(one, other)
    assert (found.where, found.unequal) == ((places[0],), 3)


def test_a_relative_difference_is_relative_to_the_larger_number() -> None:
    found = compare(single(0, 2, 1), single(0, 4, 1))
    assert (found.max_rel, found.scale) == (0.5, 4.0)
    assert compare(single(0.25), single(0.25)).scale == 0.25


def test_equal_arrays_show_no_place() -> None:
    for array in (single(1, 2), numpy.array([1, 2])):
        found = compare(array, array)
        assert (found.where, found.value_a, found.value_b) == ((), "", "")


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
    assert compare(numpy.array([1j]), numpy.array([1.0])).how == "not-at-all"
    found = compare(single(1.0), numpy.array([1]))
    counts = (found.unequal, found.nan_a, found.nan_b, found.inf_a, found.inf_b)
    assert (found.how, counts, found.not_finite_in_one) == ("not-at-all", (0,) * 5, 0)
    assert (found.max_abs, found.where, found.value_a) == (None, (), "")


BITS = numpy.array([0x3F80, 2], dtype=numpy.uint16)


@each(
    ("one", "other", "how"),
    [
        ((numpy.array([1, 2], numpy.int32), "int32"), (numpy.array([1, 2]), "int64"), "exactly"),
        ((numpy.array([True, False]), "bool"), (numpy.array([1, 0]), "int64"), "exactly"),
        ((numpy.array([1, 2]), "int64"), (single(1, 2), "float32"), "not-at-all"),
        ((numpy.array([1, 2]), "int64"), (numpy.array(["1", "2"]), "text"), "not-at-all"),
        ((BITS, "bfloat16"), (numpy.array([1, 2]), "int64"), "not-at-all"),
        ((BITS, "bfloat16"), (BITS, "uint16"), "not-at-all"),
        ((BITS, "bfloat16"), (single(1, 2), "float32"), "numbers"),
    ],
)
def test_which_types_are_compared_with_each_other(one: Any, other: Any, how: str) -> None:
    for sides in ((*one, *other), (*other, *one)):
        assert differences.compare("x", "output", *sides)["how"] == how


@each(
    ("text", "shown"),
    [
        ("é" * 40, "é" * 40),
        ("é" * 41, "é" * 37 + "..."),
        ("é".encode(), "é"),
        (b"\xff", "\ufffd"),
    ],
)
def test_text_is_shown_in_brief_and_whatever_bytes_it_has(text: str | bytes, shown: str) -> None:
    other = "" if isinstance(text, str) else b""
    sides = [value for each in (text, other) for value in recording.stored(numpy.array([each]))]
    assert differences.compare("x", "output", *sides)["value_a"] == shown


def test_complex_numbers_and_arrays_without_axes_or_elements() -> None:
    found = compare(numpy.array([1 + 1j]), numpy.array([1 + 1.5j]))
    assert (found.max_abs, found.where) == (0.5, (0,))
    short = compare(
        numpy.array([1 + 1j], numpy.complex64), numpy.array([1 + 1.5j], numpy.complex64)
    )
    assert (short.how, short.max_abs, short.max_ulp) == ("numbers", 0.5, 2**22)
    assert compare(numpy.float32(2.0), numpy.float32(2.5)).where == ()
    assert compare(numpy.zeros((0, 3)), numpy.zeros((0, 3))).unequal == 0


def test_cosine() -> None:
    assert compare(single(1, 0), single(0, 1)).cosine == 0.0
    assert compare(single(1, 2), single(2, 4)).cosine == pytest.approx(1.0)
    assert compare(single(0, 0), single(0, 0)).cosine == 1.0
    assert compare(single(0, 0), single(0, 1)).cosine is None
    # Rounding would take the quotient beyond 1.
    assert compare(single(1, 1, 1), single(1, 1, 1)).cosine == 1.0
    assert compare(single(1, 1, 1), single(-1, -1, -1)).cosine == -1.0
    # The squares of one side are too large for float64.
    assert compare(numpy.array([1e200]), numpy.array([1e-150])).cosine is None


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


VALUES = numpy.array([[0.1, 0.4, 0.9], [0.7, 0.2, 0.3]])
NEAR = numpy.array([[0.1, 0.8, 0.6], [0.7, 0.2, 0.3]])
PAIRS = numpy.array([[0.1, 0.2], [0.9, 0.8]])


def integers(*rows: Any) -> Any:
    return numpy.array(rows)


@each(
    ("choices", "margin"),
    [
        ((integers(2, 0), integers(1, 0)), 0.5),
        ((integers([2], [0]), integers([1], [0])), 0.5),
        ((integers([2, 1], [0, 2]), integers([1, 2], [0, 2])), 0.5),
        ((integers([2, 1, 0], [0, 2, 1]), integers([1, 2, 0], [0, 2, 1])), 0.5),
        ((VALUES > 0.5, NEAR > 0.5), 0.4),
    ],
)
def test_a_choice_follows_from_what_it_was_made_from(choices: Any, margin: float) -> None:
    name, found = discrete.source_of(choices, [("logits", VALUES, NEAR)])
    assert (name, found) == ("logits", pytest.approx(margin))
    # The margin is the largest on either side.
    name, found = discrete.source_of(choices[::-1], [("logits", NEAR, VALUES)])
    assert (name, found) == ("logits", pytest.approx(margin))


@each(
    ("choices", "a", "b"),
    [
        ((integers(1), integers(0)), [[0.2, 0.3]], [[0.4, 0.3]]),
        ((numpy.array(1), numpy.array(0)), [0.2, 0.3], [0.4, 0.3]),
        ((integers(1), integers(0)), [0.2, 0.3], [0.4, 0.3]),
    ],
)
def test_of_two_classes_and_of_a_single_example_the_largest_is_a_choice(
    choices: Any, a: Any, b: Any
) -> None:
    assert discrete.source_of(choices, [("x", numpy.array(a), numpy.array(b))])[0] == "x"


def test_scores_that_were_rounded_to_the_threshold_may_be_on_either_side_of_it() -> None:
    a, b = numpy.array([0.2, 0.5, 0.5]), numpy.array([0.2, 0.5, 0.6])
    choices = (numpy.array([False, False, True]), numpy.array([False, True, True]))
    assert discrete.source_of(choices, [("scores", a, b)]) == ("scores", 0.0)


@each(
    ("choices", "a", "b"),
    [
        # Only one of the two follows.
        ((integers(2, 0), integers(1, 1)), VALUES, NEAR),
        ((integers(1, 1), integers(1, 0)), VALUES, NEAR),
        # One value leaves no choice, and a number has no positions.
        ((integers(0, 0), integers(0, 1)), VALUES[:, :1], NEAR[:, :1]),
        ((numpy.array(0), numpy.array(1)), numpy.array(1.0), numpy.array(2.0)),
        # Truth values are no positions, and positions no truth values.
        ((numpy.array([True, False]), numpy.array([True, True])), PAIRS, PAIRS[:1].repeat(2, 0)),
        ((integers([True, False]) * 1, integers([False, True]) * 1), VALUES[:1, :2], NEAR[:1, :2]),
        # Positions outside, and positions from the end, which argsort does not give.
        ((integers([3], [0]), integers([1], [0])), VALUES, NEAR),
        ((integers([-1], [0]), integers([1], [0])), VALUES, NEAR),
        # Other shapes.
        ((integers([[2], [0]]), integers([[1], [0]])), VALUES, NEAR),
        ((integers([2]), integers([1])), VALUES, NEAR),
        (
            (integers([2, 1, 0, 0], [0, 2, 1, 1]), integers([1, 2, 0, 0], [0, 2, 1, 1])),
            VALUES,
            NEAR,
        ),
        ((numpy.array([True, False]), numpy.array([False, True])), PAIRS[::-1], PAIRS),
        ((integers([0]), integers([1])), PAIRS[1:].repeat(2, 0), PAIRS[:1].repeat(2, 0)),
        # No threshold: all are above it, none is, or some that are above are below others.
        ((VALUES > 0, NEAR > 0.5), VALUES, NEAR),
        ((VALUES > 1, NEAR > 0.5), VALUES, NEAR),
        ((VALUES < 0.5, NEAR < 0.5), VALUES, NEAR),
    ],
)
def test_what_does_not_explain_a_choice(choices: Any, a: Any, b: Any) -> None:
    assert discrete.source_of(choices, [("x", a, b)]) == ("", None)
    assert discrete.source_of(choices[::-1], [("x", b, a)]) == ("", None)
