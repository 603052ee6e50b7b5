"""How gradients of halves are judged, and what several looks say together."""

from __future__ import annotations

import math

import pytest

from tests.cases import each
from whygpu.errors import UsageError
from whygpu.guard.sameness import (
    NO_ROOM,
    Gaps,
    Look,
    LossCheck,
    grain_of,
    quotient,
    reduction_of,
    settled,
    windows,
)
from whygpu.guard.splitting import CannotSplit


@each(
    ("gaps", "found"),
    [
        (Gaps(1e-7, 1.0, 0.0), "mean"),
        (Gaps(0.5, 1e-7, 0.0), "sum"),
        (Gaps(0.05, 1.0, 1e-7), None),
        (Gaps(0.002, 1.0, 0.001), "mean"),
        (Gaps(0.05, 1.0, 0.001), None),
        (Gaps(0.004, 1.0, 1e-7, grain=2.0**-7), "mean"),
        (Gaps(0.05, 1.0, 1e-7, grain=2.0**-7), None),
        (Gaps(0.5, 0.5, 0.9), None),
        (Gaps(math.nan, math.nan, 0.0), None),
    ],
)
def test_reduction(gaps: Gaps, found: str | None) -> None:
    assert reduction_of(gaps) == found


@each(
    ("before", "looks", "found", "messages"),
    [
        (None, ["mean", None], "mean", 0),
        ("sum", [None, None], "sum", 0),
        (None, [None, None], None, 1),
        (None, ["random", None], None, 1),
        (None, [], None, 0),
    ],
)
def test_looks_together(before: Look, looks: list[Look], found: Look, messages: int) -> None:
    words: list[str] = []
    assert before != "random"
    assert settled(before, looks, words.append) == found
    assert len(words) == messages


def test_looks_that_contradict_each_other_are_a_refusal() -> None:
    with pytest.raises(CannotSplit):
        settled("mean", ["sum"], lambda words: None)


@pytest.mark.parametrize(
    ("on_grid", "grain"),
    [
        ({"bfloat16": 90, "float16": 100}, 2.0**-7),
        ({"bfloat16": 10, "float16": 60}, 2.0**-10),
        ({"bfloat16": 1, "float16": 9}, 0.0),
    ],
)
def test_the_grain_is_that_of_most_numbers(on_grid: dict[str, int], grain: float) -> None:
    assert grain_of(on_grid.__getitem__, 100) == grain
    assert grain_of(lambda name: 0, 0) == 0.0


def test_both_ends_of_a_batch_are_looked_at() -> None:
    assert windows(32, 4) == [0, 24]
    assert windows(8, 4) == [0]


def test_a_part_cannot_count_for_more_than_the_whole() -> None:
    assert quotient(1.0, 4.0) == 0.25
    assert quotient(0.0, 0.0) == 0.0
    for part, whole in ((2.0, 1.0), (math.nan, 1.0), (1.0, math.inf)):
        with pytest.raises(UsageError, match="weight="):
            quotient(part, whole)


class _Narrow(LossCheck):
    """A check for which there is memory only up to some samples at each end."""

    def __init__(self, room: int, said: list[str]) -> None:
        super().__init__(differs=said.append, wanted=True)
        self.room = room
        self.looks: list[int] = []

    def _looks(self, whole: object, half: int) -> list[Look]:
        del whole
        self.looks.append(half)
        if half > self.room:
            raise MemoryError
        return ["sum"]


@each(
    ("room", "looks", "found", "said"),
    [(64, [32], "sum", []), (5, [32, 8, 2], "sum", []), (0, [32, 8, 2, 1], "mean", [NO_ROOM])],
)
def test_a_check_that_does_not_fit_takes_fewer_samples_and_does_not_refuse_the_parts(
    room: int, looks: list[int], found: str, said: list[str]
) -> None:
    differences: list[str] = []
    check = _Narrow(room, differences)
    assert check.reduction(None, 64) == found
    assert (check.looks, differences) == (looks, said)
