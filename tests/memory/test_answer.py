"""From the trials of a search to its answer, in numbers that can be checked by hand (MiB)."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.memory.test_batch_search import WISHES
from tests.memory.test_forecast import MIB, fails, fits, gauge, trial
from whygpu.memory.answer import answer, is_irregular, with_margin
from whygpu.memory.batch_search import StopReason
from whygpu.model.batch import Trial

LINE = (fits(10, 200), fits(50, 600))


def unmeasured(batch: int) -> Trial:
    return trial(batch, outcome="does-not-fit")


@each(
    ("reason", "outcome", "batch"),
    [
        ("bracketed", "found", 50),
        ("predicted", "found", 50),
        ("at-largest", "at-largest", 50),
        ("trials", "unsettled", 50),
        ("too-slow", "too-slow", 50),
        ("nothing-fits", "nothing-fits", None),
        ("leaks", "leaks", None),
        ("failed", "failed", None),
    ],
)
def test_each_end_of_a_search_has_its_outcome(
    reason: StopReason, outcome: str, batch: int | None
) -> None:
    result = answer("step", [*LINE, unmeasured(90)], reason)
    assert (result.outcome, result.batch) == (outcome, batch)
    assert (result.largest_run, result.smallest_not) == (50, 90)
    assert (result.margin, result.seconds, result.notes) == (0.0, 0.0, ())


def test_the_forecast_needs_two_trials_that_ran_and_a_slope() -> None:
    assert answer("step", LINE, "bracketed").forecast == 90
    assert answer("step", LINE[:1], "bracketed").forecast is None
    assert answer("step", [LINE[0], unmeasured(20)], "bracketed").forecast is None
    flat = [fits(10, 600, "gpu"), fits(50, 600, "gpu")]
    assert answer("step", flat, "bracketed").forecast is None


@each(
    ("failed", "note"),
    [
        ((), ""),
        ((60,), ""),
        ((50,), "50 did not fit in one trial but did in another"),
        ((40, 45), "40 did not fit, but 50 did"),
    ],
)
def test_a_failure_that_contradicts_the_answer_is_a_note(
    failed: tuple[int, ...], note: str
) -> None:
    trials = [*LINE, *map(unmeasured, failed)]
    notes = answer("step", trials, "bracketed").notes
    assert bool(notes) is bool(note)
    assert all(text.startswith(note) for text in notes)
    assert is_irregular(trials) is bool(note)


def test_trials_near_the_limit_that_disagree_are_irregular_in_main_memory_only() -> None:
    for took, irregular in ((1050, False), (1060, True)):
        trials = [fits(10, 200), fits(89, 990), fails(90, took)]
        assert is_irregular(trials) is irregular
    assert not is_irregular([fits(10, 200, "gpu"), fits(89, 990, "gpu"), fails(90, 1200, "gpu")])
    assert is_irregular([]) is False


def test_what_runs_out_first_is_the_limit() -> None:
    limit = answer("step", LINE, "bracketed").limit
    assert limit is not None
    assert (limit.name, limit.peak) == ("memory", 600 * MIB)
    both = trial(10, gauge(300, "gpu"), gauge(900, "gpu-gradients"))
    shown = answer("step", [both], "bracketed").limit
    assert shown is not None
    assert (shown.name, shown.peak) == ("gpu", 300 * MIB)


def test_where_nothing_fits_what_came_nearest_to_its_limit_ran_out() -> None:
    unlimited = gauge(5000, "address-space", None)
    for gauges, name in (
        ((gauge(2000, "gpu", 4000), gauge(900), unlimited), "memory"),
        ((gauge(900), gauge(5, "gpu", 0)), "gpu"),
        ((gauge(1200, "gpu"), gauge(1200, "gpu-gradients")), "gpu"),
    ):
        last = trial(1, *gauges, outcome="does-not-fit")
        shown = answer("step", [fails(8, 1200), last], "nothing-fits").limit
        assert shown is not None
        assert shown.name == name
    assert answer("step", [unmeasured(1)], "nothing-fits").limit is None
    assert answer("step", [], "failed").limit is None


@each(("margin", "batch"), [(0.0, 50), (0.3, 50), (0.5, 40), (0.75, 15)])
def test_a_margin_is_taken_off_along_the_line(margin: float, batch: int) -> None:
    """50 samples took 600 of 1000, and each takes 10."""
    result = with_margin(answer("step", LINE, "bracketed"), WISHES, margin)
    assert (result.batch, result.margin) == (batch, margin)


def test_on_a_gpu_the_margin_counts_from_what_failed() -> None:
    """Its allocator failed at 60, with 700 of 1000 on its counters: that is all there is."""
    trials = [fits(10, 200, "gpu"), fits(50, 600, "gpu"), trial(60, outcome="does-not-fit")]
    assert with_margin(answer("step", trials, "bracketed"), WISHES, 0.2).batch == 40
    assert with_margin(answer("step", trials[:2], "bracketed"), WISHES, 0.2).batch == 31


def test_without_a_line_the_margin_is_a_part_of_the_batch() -> None:
    bare = [trial(40), unmeasured(80)]
    assert with_margin(answer("step", bare, "trials"), WISHES, 0.25).batch == 30
    on_grid = with_margin(answer("step", bare, "trials"), WISHES._replace(multiple_of=8), 0.25)
    assert on_grid.batch == 24


@each("took", [(600, 600), (650, 600)])
def test_if_memory_does_not_rise_the_margin_is_a_part_of_the_batch(took: tuple[int, int]) -> None:
    flat = [fits(10, took[0], "gpu"), fits(50, took[1], "gpu")]
    assert with_margin(answer("step", flat, "trials"), WISHES, 0.25).batch == 37


def test_without_a_margin_what_ran_is_the_answer_although_counters_exceed_the_limit() -> None:
    over = answer("step", [fits(10, 200, "gpu"), fits(50, 1100, "gpu")], "bracketed")
    assert with_margin(over, WISHES, 0.0).batch == 50


def test_there_is_no_margin_of_nothing() -> None:
    nothing = answer("step", [unmeasured(1)], "nothing-fits")
    assert nothing.notes == ()
    assert with_margin(nothing, WISHES, 0.1).batch is None
    leaking = answer("step", LINE, "leaks")
    assert with_margin(leaking, WISHES, 0.1).batch is None
    assert with_margin(leaking, WISHES, 0.1).margin == pytest.approx(0.1)
