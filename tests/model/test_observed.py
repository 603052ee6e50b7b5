"""Unknown never acts as fine."""

from __future__ import annotations

import pytest

from tests.cases import each
from whygpu.model.observed import (
    Absent,
    Known,
    NotApplicable,
    Observed,
    Undetermined,
    Unknown,
    need,
    need_or,
    transform,
)

EVERY = (Known(0, "here"), Known(True, "here"), Absent("there"), Unknown("no permission"))


@each("observed", EVERY)
def test_nothing_observed_has_a_truth_value(observed: Observed[int]) -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(observed)


@each("observed", EVERY)
def test_nothing_observed_takes_part_in_arithmetic_or_order(observed: Observed[int]) -> None:
    with pytest.raises(TypeError):
        observed + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        _ = observed < 1  # type: ignore[operator]


def test_need_gives_the_value_or_ends_the_judgement() -> None:
    assert need(Known(3, "here")) == 3
    with pytest.raises(Undetermined, match="no permission"):
        need(Unknown("no permission"))
    with pytest.raises(NotApplicable, match="there"):
        need(Absent("there"))


def test_absence_can_be_an_answer_but_ignorance_cannot() -> None:
    assert need_or(Absent("there"), absent="none") == "none"
    assert need_or(Known("a", "here"), absent="none") == "a"
    with pytest.raises(Undetermined):
        need_or(Unknown("no permission"), absent="none")


def test_transform_keeps_the_source_and_touches_only_what_is_known() -> None:
    assert transform(Known("12", "here"), int) == Known(12, "here")
    assert transform(Absent("there"), int) == Absent("there")
    assert transform(Unknown("no permission"), int) == Unknown("no permission")
