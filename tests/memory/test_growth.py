"""The course of its memory tells a leak from a program that is merely too big."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tests.cases import each
from whygpu.memory.growth import Course, judge, trend_of
from whygpu.model.memory_use import Kept, Point

GIB = 1 << 30
MIB = 1 << 20
LIMIT = 10 * GIB


def curve(height: Callable[[float], float], count: int = 60, seconds: float = 30) -> list[Point]:
    """Bytes by how far the run has come, from 0 to 1."""
    points = []
    for number in range(count):
        size = int(height(number / (count - 1)))
        points.append(Point(seconds * number / (count - 1), size, size))
    return points


def wave(part: float, rounds: int) -> float:
    """Up and down in each round of work, from 0 to 1."""
    return abs(math.sin(math.pi * rounds * part))


def leaking(part: float) -> float:
    return GIB + 7 * GIB * part + 2 * GIB * wave(part, 37)


def level(part: float) -> float:
    return 2 * GIB + 5 * GIB * wave(part, 37)


def building(part: float) -> float:
    return 9.5 * GIB * part


def course(points: Sequence[Point] = (), **known: Any) -> Course:
    base = Course("gpu", asked=64 * MIB, free=10 * MIB, limit=LIMIT, held=LIMIT - 20 * MIB)
    return base._replace(points=tuple(points), **known)


def verdict(points: Sequence[Point] = (), **known: Any) -> tuple[str, str]:
    found = judge(course(points, **known))
    return found.reason, found.confidence


RESULTS = Kept("outputs", 400, 8 * GIB, "torch")


def test_a_rise_through_many_steps_is_a_leak() -> None:
    found = judge(course(curve(leaking), steps=300, rounds=301))
    assert found.reason == "leak"
    assert found.confidence == "certain"
    assert "over 301 rounds of work" in found.because


@each(
    "shown",
    [
        {"steps": 12},
        {"turnover": 40.0},
        {"progress": 5},
        {"rounds": 50, "kept": (RESULTS,)},
        {"kept": (RESULTS._replace(bytes=None),)},
    ],
    ids=str,
)
def test_each_sign_of_completed_rounds_makes_a_rise_a_leak(shown: dict[str, Any]) -> None:
    assert verdict(curve(leaking), **shown)[0] == "leak"


@each(
    "shown",
    [
        {},
        {"rounds": 50},
        {"turnover": 2.5},
        {"rounds": 80, "kept": (RESULTS._replace(name="params"),)},
        {"rounds": 80, "kept": (RESULTS._replace(of="numpy"),)},
    ],
    ids=str,
)
def test_a_rise_that_may_be_a_model_or_data_being_made_is_no_leak(shown: dict[str, Any]) -> None:
    assert verdict(curve(building), **shown)[0] == "unknown"


def test_an_open_question_is_reported() -> None:
    found = judge(course(curve(building), rounds=80, kept=(RESULTS._replace(name="params"),)))
    assert "nothing shows whether rounds of work were completed" in found.because
    assert "`params` holds 400 arrays, 8 GiB of it" in found.because


def test_a_rise_in_the_first_round_is_one_large_step() -> None:
    """No loop had come round, or an optimizer is there and has done no step."""
    assert verdict(curve(building), rounds=0) == ("too-big", "likely")
    assert verdict(curve(building), steps=0, turnover=1.2) == ("too-big", "likely")


def test_a_level_and_then_more_than_ever_is_too_big() -> None:
    found = judge(course(curve(level), steps=300))
    assert found.reason == "too-big"
    assert "constant at 2" in found.because


def test_another_phase_at_the_end_is_no_leak() -> None:
    """Evaluation with a larger batch: up once, and not step by step."""

    def then_up(part: float) -> float:
        return level(part) if part < 0.8 else 9.5 * GIB

    assert verdict(curve(then_up), steps=300)[0] != "leak"


def test_memory_that_is_given_back_in_the_end_is_no_leak() -> None:
    def hill(part: float) -> float:
        return GIB + 8 * GIB * math.sin(math.pi * part)

    assert verdict(curve(hill), steps=300)[0] != "leak"


def test_a_small_rise_does_not_account_for_a_large_request() -> None:
    """What has piled up is less than what was missing: without it, it would have failed as well."""

    def slight(part: float) -> float:
        return 2 * GIB + 1.2 * GIB * part

    found = judge(course(curve(slight), steps=300, asked=9 * GIB, free=6 * GIB))
    assert found.reason == "too-big"
    assert "less than the 9 GiB of the request that failed" in found.because


def test_more_than_all_there_is() -> None:
    assert verdict(asked=11 * GIB) == ("too-big", "certain")


def test_what_others_hold_comes_before_what_is_held() -> None:
    found = judge(course(held=GIB, others=8 * GIB, asked=2 * GIB, free=GIB))
    assert (found.reason, found.confidence) == ("other-process", "certain")


def test_others_are_not_to_blame_for_what_would_not_fit_without_them() -> None:
    found = judge(course(held=GIB, others=4 * GIB, asked=9 * GIB, free=5 * GIB, rounds=0))
    assert found.reason == "too-big"


def test_gaps() -> None:
    assert verdict(held=6 * GIB, unused=3 * GIB, asked=GIB)[0] == "fragmentation"
    assert verdict(held=6 * GIB, unused=3 * GIB, asked=4 * GIB, rounds=0)[0] == "too-big"


def test_a_piece_that_was_large_enough_is_no_gap() -> None:
    known: dict[str, Any] = {"held": 6 * GIB, "unused": 3 * GIB, "asked": GIB, "rounds": 0}
    assert verdict(**known, largest_free=512 * MIB)[0] == "fragmentation"
    assert verdict(**known, largest_free=2 * GIB)[0] == "too-big"


def test_kept_results_show_a_leak_that_is_too_fast_for_a_curve() -> None:
    assert verdict(rounds=400, kept=(RESULTS,)) == ("leak", "likely")
    assert verdict(rounds=3, kept=(RESULTS,))[0] == "unknown"
    assert verdict(rounds=400, kept=(RESULTS._replace(bytes=GIB),))[0] == "unknown"


def test_data_that_was_there_from_the_beginning_is_not_what_leaks() -> None:
    def loaded(part: float) -> float:
        return min(part * 80, 8) * GIB + GIB * wave(part, 37)

    batches = RESULTS._replace(name="batches", bytes=7 * GIB)
    assert verdict(curve(loaded), rounds=400, steps=399, kept=(batches,))[0] == "too-big"


def late(part: float) -> float:
    """On a level for long, and then up within a tenth of the time."""
    return level(part) if part < 0.9 else 7 * GIB + 25 * GIB * (part - 0.9)


@each(
    ("shown", "reason"),
    [
        ({"steps": 300, "rounds": 40, "kept": (RESULTS,)}, "leak"),
        ({"steps": 300, "asked": 3 * GIB, "free": GIB}, "too-big"),
        ({"steps": 300, "rounds": 0}, "too-big"),
        ({"steps": 300}, "unknown"),
        ({}, "unknown"),
    ],
    ids=str,
)
def test_a_late_rise_is_a_fast_leak_or_another_phase(shown: dict[str, Any], reason: str) -> None:
    assert verdict(curve(late, count=120), **shown)[0] == reason


def test_what_the_kernel_killed_leaves_its_curve_and_a_question() -> None:
    host = course(curve(late, count=120), place="host", asked=None, free=None, held=9 * GIB)
    assert "one large step, or a fast leak" in judge(host).because


def test_nothing_known_is_cannot_tell() -> None:
    found = judge(Course("gpu"))
    assert (found.reason, found.because) == (
        "unknown",
        "it ended before its memory use showed a trend",
    )


def test_a_work_done_before_is_not_a_first_round() -> None:
    assert verdict(steps=0, progress=2)[0] == "unknown"
    # An epoch is announced before it begins.
    assert verdict(steps=0, progress=1)[0] == "too-big"
    assert verdict(rounds=0, progress=1)[0] == "unknown"


def test_joined_points_are_judged_by_their_troughs() -> None:
    """A curve of hours, whose points are windows of many rounds."""
    points = [
        Point(float(n), GIB + n * 100 * MIB, GIB + n * 100 * MIB + 3 * GIB) for n in range(60)
    ]
    trend = trend_of(points)
    assert trend is not None
    assert trend.steady


def test_a_wait_at_the_end_is_no_level() -> None:
    """TensorFlow waits for ten seconds before it gives up."""

    def then_waiting(part: float) -> float:
        return GIB + 8 * GIB * min(part / 0.5, 1)

    assert verdict(curve(then_waiting), steps=300)[0] == "leak"


def test_a_fast_leak_and_a_long_wait_is_a_leak() -> None:
    """Full after a second, and twelve more until XLA gave up."""

    def filled(part: float) -> float:
        return min(part * 100, 9.9) * GIB

    assert verdict(curve(filled, count=160), rounds=281, kept=(RESULTS,))[0] == "leak"


def test_little_that_comes_and_goes_is_level() -> None:
    """32 MiB at first and 200 later, of 10 GiB, and then one request of 4 GiB."""

    def little(part: float) -> float:
        return (32 if part < 0.4 else 200) * MIB + 150 * MIB * wave(part, 37)

    known: dict[str, Any] = {"steps": 1500, "asked": 4 * GIB, "free": 2 * GIB}
    assert verdict(curve(little, count=122), **known)[0] == "too-big"


def test_too_few_points_have_no_trend() -> None:
    assert trend_of(curve(leaking, count=23)) is None
    assert trend_of(curve(leaking, count=24)) is not None
