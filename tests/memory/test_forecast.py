"""The line through what trials took, in numbers that can be checked by hand (all sizes in MiB)."""

from __future__ import annotations

import math

import pytest

from tests.cases import each
from whygpu.memory.forecast import Forecast, forecast
from whygpu.model.batch import Gauge, GaugeName, Trial, TrialOutcome

MIB = 1 << 20
BEFORE = 100
LIMIT = 1000


def gauge(took: float, name: GaugeName = "memory", limit: int | None = LIMIT) -> Gauge:
    size = int(took * MIB)
    return Gauge(name, BEFORE * MIB, size, size, None if limit is None else limit * MIB)


def trial(batch: int, *gauges: Gauge, outcome: TrialOutcome = "fits", steps: int = 3) -> Trial:
    return Trial(batch, outcome, "", gauges, steps, 0.1, 1.0)


def fits(batch: int, took: float, name: GaugeName = "memory") -> Trial:
    return trial(batch, gauge(took, name))


def fails(batch: int, took: float, name: GaugeName = "memory", steps: int = 3) -> Trial:
    return trial(batch, gauge(took, name), outcome="does-not-fit", steps=steps)


def seen(*trials: Trial) -> Forecast:
    found = forecast(trials)
    assert found is not None
    return found


@each(
    "trials",
    [
        (),
        (fails(8, 2000),),
        (trial(8),),
        (trial(8, gauge(500, limit=None)),),
    ],
)
def test_no_forecast_if_nothing_with_a_limit_was_measured(
    trials: tuple[Trial, ...],
) -> None:
    assert forecast(trials) is None


def test_after_one_trial_all_that_it_took_is_laid_on_the_batch() -> None:
    one = seen(fits(10, 200))
    assert one.slope == 10 * MIB
    assert (one.surely, one.batch, one.perhaps) == (90, 90, math.inf)
    assert not one.both_sides


def test_a_first_trial_that_took_nothing_does_not_promise_everything() -> None:
    assert seen(fits(10, 100)).slope == 0.4 * MIB


def test_two_trials_make_a_line_and_noise_its_width() -> None:
    two = seen(fits(50, 600), fits(10, 200))
    assert two.slope == 10 * MIB
    assert two.batch == 90
    assert two.surely == pytest.approx(50 + 400 / 10.125)
    assert two.perhaps == pytest.approx(50 + 405 / 9.875)
    assert not two.flattened


def test_the_noise_of_a_small_step_is_not_taken_for_less_than_it_is() -> None:
    small = seen(fits(10, 120), fits(50, 160))
    assert small.surely == pytest.approx(50 + 840 / 1.1)
    assert small.perhaps == pytest.approx(50 + 844 / 0.9)


def test_the_two_largest_that_ran_make_the_line() -> None:
    three = seen(fits(10, 200), fits(46, 570), fits(50, 600))
    assert three.slope == 7.5 * MIB


def test_neighbours_alone_have_to_do() -> None:
    assert seen(fits(48, 580), fits(50, 600)).slope == 10 * MIB


def test_on_the_cpu_memory_that_did_not_grow_rises_as_before() -> None:
    assert seen(fits(10, 200), fits(40, 500), fits(50, 500)).slope == 10 * MIB


def test_on_a_gpu_memory_that_fell_rises_as_before() -> None:
    points = [(10, 200), (20, 300), (40, 600), (60, 500)]
    assert seen(*(fits(batch, took, "gpu") for batch, took in points)).slope == 15 * MIB
    assert seen(*(fits(batch, took, "gpu") for batch, took in points[2:])).batch == math.inf


@each(("last", "flattened"), [(780, True), (800, True), (850, True), (860, False)])
def test_a_compiler_that_begins_to_save_memory_near_the_limit(last: int, flattened: bool) -> None:
    trials = [fits(10, 400, "gpu"), fits(50, 800, "gpu"), fits(60, last, "gpu")]
    assert seen(*trials).flattened is flattened
    assert not seen(fits(10, 400, "gpu"), fits(50, 690, "gpu"), fits(60, 680, "gpu")).flattened
    on_cpu = [fits(10, 400), fits(50, 800), fits(60, last)]
    assert not seen(*on_cpu).flattened


@each(("smaller", "larger", "flattened"), [(700, 700, False), (701, 701, True), (750, 701, True)])
def test_memory_that_falls_is_saved_memory_only_above_seven_tenths_of_the_limit(
    smaller: int, larger: int, flattened: bool
) -> None:
    trials = fits(10, 400, "gpu"), fits(50, smaller, "gpu"), fits(60, larger, "gpu")
    assert seen(*trials).flattened is flattened


def test_a_batch_that_takes_less_when_it_runs_again_shows_no_saving() -> None:
    trials = fits(10, 400, "gpu"), fits(50, 800, "gpu"), fits(50, 790, "gpu")
    assert not seen(*trials).flattened


def test_the_first_limit_to_be_reached_decides() -> None:
    trials = [
        trial(10, gauge(200, "gpu", 4000), gauge(110), gauge(500, "address-space", None)),
        trial(50, gauge(600, "gpu", 4000), gauge(550), gauge(900, "address-space", None)),
    ]
    assert seen(*trials).gauge.name == "memory"
    assert seen(*trials).batch == pytest.approx(50 + 450 / 11)


def test_main_memory_is_judged_by_its_peak_too_and_a_gpus_by_its_steps_only() -> None:
    def with_peak(batch: int, steady: int, peak: int, name: GaugeName) -> Trial:
        return trial(batch, Gauge(name, 100 * MIB, peak * MIB, steady * MIB, LIMIT * MIB))

    for name, batch in (("memory", 70), ("gpu", 90)):
        trials = [with_peak(10, 200, 400, name), with_peak(50, 600, 800, name)]  # type: ignore[arg-type]
        assert seen(*trials).batch == batch


def test_what_is_too_large_and_was_measured_is_the_other_end_of_the_line() -> None:
    both = seen(fits(10, 200), fits(50, 600), fails(100, 1100))
    assert both.both_sides
    assert both.slope == 10 * MIB
    assert (both.batch, both.scatter) == (90, 0)
    assert both.surely == pytest.approx(90 - 0.75 / math.sqrt(2))
    assert both.perhaps == pytest.approx(90 + 0.75 / math.sqrt(2))


@each(
    ("end", "known"),
    [
        (fails(100, 1100), True),
        (fails(100, 1100, steps=2), False),
        (fails(100, 1000), False),
        (fails(100, 1100)._replace(outcome="too-slow"), False),
        (fails(40, 1100), False),
        (trial(100, outcome="does-not-fit"), False),
        (trial(100, gauge(1100, limit=None), outcome="does-not-fit"), False),
    ],
)
def test_an_end_that_was_not_measured_is_no_point_of_the_line(end: Trial, known: bool) -> None:
    assert seen(fits(10, 200), fits(50, 600), end).both_sides is known


def test_a_gpus_refusal_says_how_much_was_asked_for_whenever_it_came() -> None:
    trials = (fits(10, 300, "gpu"), fits(50, 600, "gpu"), fails(100, 1100, "gpu", steps=0))
    refused = seen(*trials)
    assert refused.both_sides
    assert not refused.flattened
    assert (refused.slope, refused.batch) == (10 * MIB, 90)


def test_points_near_the_limit_are_taken_together_and_differ_by_chance() -> None:
    near = seen(fits(10, 200), fits(80, 900), fails(90, 1010), fails(120, 5000))
    slope = (955 - 200) / 75
    meets = [80 + 100 / slope, 90 - 10 / slope]
    assert near.slope == pytest.approx(slope * MIB)
    assert near.batch == pytest.approx(sum(meets) / 2)
    apart = (meets[0] - meets[1]) / math.sqrt(2)
    assert near.scatter == pytest.approx(abs(apart) / near.batch)


def test_without_a_small_batch_the_slope_is_from_what_was_there_before() -> None:
    assert seen(fits(80, 900), fails(90, 1010)).slope == pytest.approx((955 - 100) / 85 * MIB)


def test_where_memory_has_flattened_what_was_refused_decides_alone() -> None:
    flattened = seen(fits(50, 800, "gpu"), fits(60, 780, "gpu"), fails(100, 1200, "gpu"))
    assert flattened.slope == 11 * MIB
    assert flattened.batch == flattened.surely == flattened.perhaps == pytest.approx(100 - 200 / 11)
    assert flattened.both_sides
    assert flattened.flattened


def test_main_memory_that_has_flattened_follows_the_line_all_the_same() -> None:
    """It is never saved when it runs short: what was measured on both sides counts."""
    line = seen(fits(10, 200), fits(70, 800), fits(80, 780), fails(140, 1380))
    assert not line.flattened
    assert (line.slope, line.batch) == (10 * MIB, 102)


@each(
    ("trials", "near"),
    [
        ([fits(94, 950), fits(100, 960), fails(120, 1040)], [1, 2]),
        ([fits(95, 950), fits(100, 960), fails(120, 1040)], [0, 1, 2]),
        ([fits(98, 950), fits(100, 960), fails(130, 1040)], [0, 1, 2]),
        ([fits(98, 950), fits(100, 960), fails(131, 1040)], [1, 2]),
        ([fits(100, 960), fails(120, 1040), fails(130, 1100)], [0, 1, 2]),
        ([fits(100, 960), fails(120, 1040), fails(131, 1100)], [0, 1]),
    ],
)
def test_trials_at_0_95_to_1_3_times_what_ran_show_the_same_place(
    trials: list[Trial], near: list[int]
) -> None:
    """The line goes from a small batch through the middle of these trials."""
    places = [trials[place] for place in near]
    batch = sum(each.batch for each in places) / len(places)
    took = sum(each.gauges[0].peak for each in places) / len(places)
    slope = (took - 200 * MIB) / (batch - 10)
    assert seen(fits(10, 200), *trials).slope == pytest.approx(slope)


@each(("apart", "slope"), [(78, 20), (79, (950 - 200) / (104 - 10))])
def test_near_the_limit_the_slope_is_from_a_batch_at_three_quarters_or_less(
    apart: int, slope: float
) -> None:
    """The middle of the trials near the limit is at 104, where 950 are taken."""
    trials = fits(10, 200), fits(apart, 430), fits(100, 880), fails(108, 1020)
    assert seen(*trials).slope == pytest.approx(slope * MIB)


@each(
    ("trials", "slope"),
    [
        ((fits(75, 800), fails(100, 1050)), 10),
        ((fits(76, 800), fails(100, 1040)), (920 - 300) / (88 - 10)),
        ((fits(95, 860), fits(100, 980), fails(130, 1100)), 120 / (325 / 3 - 95)),
    ],
)
def test_trials_far_apart_on_both_sides_need_no_smaller_batch_for_the_slope(
    trials: tuple[Trial, ...], slope: float
) -> None:
    assert seen(fits(10, 300), *trials).slope == pytest.approx(slope * MIB)


def test_memory_that_is_less_at_the_limit_than_at_a_small_batch_rises_as_before() -> None:
    fell = seen(fits(10, 800), fits(100, 500), fails(110, 1010))
    assert fell.slope == 51 * MIB
    assert fell.batch == pytest.approx(100 + 500 / 51)
    assert fell.both_sides


@each(("steady", "slope"), [((500, 500, 500), 0), ((600, 510, 500), -1)])
def test_a_refusal_that_the_steps_do_not_explain_shows_no_limit(
    steady: tuple[int, int, int], slope: int
) -> None:
    """Compiling was refused: the steps of larger batches take no more."""

    def tried(batch: int, took: int, peak: int, outcome: TrialOutcome) -> Trial:
        one = Gauge("gpu", BEFORE * MIB, peak * MIB, took * MIB, LIMIT * MIB)
        return trial(batch, one, outcome=outcome)

    small, low, high = steady
    flat = seen(
        tried(10, small, 600, "fits"),
        tried(100, low, 600, "fits"),
        tried(110, high, 1100, "does-not-fit"),
    )
    assert (flat.slope, flat.batch, flat.both_sides) == (slope * MIB, math.inf, False)
