"""How much two lanes may differ: what each precision explains, and a tolerance that was given."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.comparer.kit import same, tensor
from whygpu.comparer.tolerance import (
    UNITS,
    Tolerance,
    digits_lost,
    explaining_precision,
    overall,
    parse,
    within,
)
from whygpu.errors import UsageError
from whygpu.model.comparison import Precision, TensorDifference, Units


def test_the_units_are_those_of_the_formats() -> None:
    """IEEE 754 has 53, 24 and 11 bits; bfloat16 has 8. TF32 cuts its inputs off after 10 bits."""
    assert UNITS == {
        "float64": 1.1102230246251565e-16,
        "float32": 5.960464477539063e-08,
        "tf32": 0.0009765625,
        "float16": 0.00048828125,
        "bfloat16": 0.00390625,
    }


@each(
    ("text", "relative"),
    [("auto", None), (" AUTO ", None), ("0", 0.0), ("1e-4", 1e-4), ("0.999", 0.999)],
)
def test_a_tolerance_is_auto_or_a_part_of_the_largest_value(
    text: str, relative: float | None
) -> None:
    assert parse(text) == Tolerance(relative)


@each("text", ["1", "1.5", "-0.1", "nan", "inf", "much", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match="expected auto, or a fraction of an output's largest value"
    ):
        parse(text)


@each(("tolerance", "text"), [(Tolerance(), "auto"), (Tolerance(1e-4), "0.0001")])
def test_a_tolerance_is_shown_as_it_is_given(tolerance: Tolerance, text: str) -> None:
    assert str(tolerance) == text


@each(
    ("units", "allowed", "may_be_tf32", "precision"),
    [
        (Units(1, 0.9, 0.9), None, False, "float32"),
        (Units(1.1, 1, 1), None, False, None),
        (Units(1.1, 1, 1), None, True, "tf32"),
        (Units(1.1, 1.1, 1), None, True, None),
        (Units(1.1, 1, 1), "float32", True, None),
        (Units(1.1, 1, 1), "tf32", False, "tf32"),
        (Units(1.1, 1.1, 1), "tf32", False, None),
        (Units(1.1, 1, 1), "bfloat16", False, "tf32"),
        (Units(1.1, 1.1, 1), "bfloat16", False, "bfloat16"),
        (Units(1.1, 1.1, 1.1), "bfloat16", False, None),
        (Units(1.1, None, 1), "bfloat16", False, "bfloat16"),
        (Units(1.1, None, None), "bfloat16", False, None),
    ],
)
def test_a_difference_is_explained_by_the_finest_precision_that_is_in_use(
    units: Units, allowed: Precision | None, may_be_tf32: bool, precision: str | None
) -> None:
    assert explaining_precision(units, "float32", allowed, may_be_tf32) == precision


@each(
    ("units", "precision"),
    [
        (Units(60, 0.1, 0.02), "tf32"),
        (Units(60, 1, 0.2), "tf32"),
        (Units(60, 0.09, 0.02), None),
        (Units(60, 1.1, 0.1), "bfloat16"),
        (Units(60, None, 1), "bfloat16"),
        (Units(60, 1.1, 0.09), None),
        (Units(60, 9, 1.1), None),
        (Units(60, None, None), None),
    ],
)
def test_a_difference_looks_like_a_precision_if_it_takes_a_fair_part_of_it(
    units: Units, precision: str | None
) -> None:
    assert units.looks_like == precision


@each(
    ("difference", "holds"),
    [
        (tensor(max_abs=1e-4, scale=1.0), True),
        (tensor(max_abs=1.1e-4, scale=1.0), False),
        (tensor(max_abs=None), True),
        (tensor(max_abs=0.0, not_finite_in_one=1), False),
        (same(how="not-at-all"), False),
        (same(how="exactly"), True),
        (tensor(how="exactly", unequal=1, max_abs=0.0), False),
        (tensor(how="exactly", unequal=1, follows="other"), True),
    ],
)
def test_a_given_tolerance_is_held_against_the_largest_difference(
    difference: TensorDifference, holds: bool
) -> None:
    assert within(difference, 1e-4) is holds


@each(
    ("difference", "part"),
    [
        (tensor(rms=0.1, level=0.5), 0.2),
        (tensor(rms=None), None),
        (tensor(level=None), None),
        (tensor(rms=0.0, level=0.0), 0.0),
        (tensor(rms=0.1, level=0.0), 1.0),
    ],
)
def test_the_whole_difference_is_a_part_of_the_values(
    difference: TensorDifference, part: float | None
) -> None:
    assert overall(difference) == part


@each(
    ("types", "lost"),
    [
        (("float64", "float32"), 2.0**24),
        (("float16", "float32"), 2.0**11),
        (("int32", "int32"), None),
    ],
)
def test_digits_are_lost_in_units_of_the_coarser_type(
    types: tuple[str, str], lost: float | None
) -> None:
    first, second = types
    assert digits_lost(tensor(dtype_a=first, dtype_b=second, rms=0.5, level=0.5)) == lost
    assert digits_lost(tensor(rms=None)) is None
