"""Single moves of the search, after trials that were made up to leave one way to go on."""

from __future__ import annotations

from tests.cases import each
from tests.memory.test_batch_search import MIB, WISHES
from tests.memory.test_forecast import fails, fits, trial
from whygpu.memory.batch_search import Stop, StopReason, Try, bracket, comes_near_refusal, next_move
from whygpu.model.batch import GaugeName, SearchWishes, Trial


def unmeasured(batch: int) -> Trial:
    return fails(batch, 0)._replace(gauges=())


@each(
    ("trials", "ends"),
    [
        ((), (None, None)),
        ((fits(8, 200),), (8, None)),
        ((unmeasured(8), unmeasured(4)), (None, 4)),
        ((fits(8, 200), unmeasured(64), unmeasured(32)), (8, 32)),
        ((unmeasured(8), fits(8, 200), unmeasured(32)), (8, 32)),
        ((unmeasured(8), fits(16, 200), fits(4, 100)), (16, None)),
    ],
)
def test_the_bracket_is_the_largest_that_ran_and_the_smallest_above_that_did_not(
    trials: tuple[Trial, ...], ends: tuple[int | None, int | None]
) -> None:
    assert bracket(trials) == ends


@each(
    ("largest", "move"),
    [(99, Stop("at-largest")), (100, Try(100)), (1000, Try(1000)), (None, Try(6336))],
)
def test_the_largest_batch_that_is_asked_for_is_tried_if_it_was_not(
    largest: int | None, move: Try | Stop
) -> None:
    assert next_move([fits(99, 101)], WISHES._replace(largest=largest)) == move


def test_a_first_batch_is_no_larger_than_the_largest() -> None:
    assert next_move([], WISHES._replace(start=64, largest=40, multiple_of=16)) == Try(32)


@each(
    ("high", "move"),
    [(80, Try(45)), (90, Try(50)), (100, Try(87)), (60, Try(35))],
)
def test_between_a_first_success_and_a_failure_the_line_decides_if_it_explains_the_failure(
    high: int, move: Try
) -> None:
    """By the line from the first trial, 90 is the limit."""
    assert next_move([fits(10, 200), unmeasured(high)], WISHES) == move


@each(("low", "move"), [(49, Try(74)), (50, Try(93)), (64, Try(93))])
def test_a_failure_that_the_line_does_not_explain_was_close_if_half_of_it_ran(
    low: int, move: Try
) -> None:
    """By the line 105 would fit, and 100 failed."""
    trials = [fits(10, 525), fits(low, 475 + 5 * low), unmeasured(100)]
    assert next_move(trials, WISHES) == move


@each(("high", "move"), [(100, Try(93)), (99, Try(79))])
def test_a_failure_below_four_fifths_of_the_forecast_is_of_something_else_than_memory(
    high: int, move: Try
) -> None:
    """By the line 125 would fit."""
    assert next_move([fits(10, 80), fits(60, 480), unmeasured(high)], WISHES) == move


@each(("more", "move"), [((), Try(93)), ((93,), Try(79)), ((93, 79), Try(69))])
def test_below_failures_that_the_line_does_not_explain_each_further_one_doubles_the_distance(
    more: tuple[int, ...], move: Try
) -> None:
    """By the line 105 would fit. The third is half way between what ran and what failed."""
    failed = [unmeasured(batch) for batch in (100, *more)]
    assert next_move([fits(10, 525), fits(60, 775), *failed], WISHES) == move


def test_a_line_that_was_refuted_on_a_gpu_does_not_hold_below_a_failure_either() -> None:
    """By the line through the smaller batches 90 would fit."""
    ran = [fits(10, 200, "gpu"), fits(50, 600, "gpu"), fits(91, 950, "gpu")]
    assert next_move([*ran, unmeasured(364)], WISHES) == Try(182)


@each(("more", "move"), [((), Try(89)), ((95,), Try(88)), ((95, 92), Try(86))])
def test_below_a_measured_failure_each_further_one_doubles_the_reserve(
    more: tuple[int, ...], move: Try
) -> None:
    """By the line 90 would fit; the reserve is 1, 2 and 4 per cent of it."""
    failed = [fails(batch, 100 + 10 * batch) for batch in (100, *more)]
    assert next_move([fits(10, 200), fits(50, 600), *failed], WISHES) == move


def test_one_batch_that_ran_makes_no_line_whatever_failed_below_it() -> None:
    assert next_move([unmeasured(20), fits(40, 500)], WISHES) == Try(160)


def test_a_slope_that_may_be_noise_does_not_keep_the_search_in_its_place() -> None:
    """52 took 1 more than 50 did, and two runs differ by 5."""
    assert next_move([fits(50, 600), fits(52, 601)], WISHES) == Try(4 * 52)


@each(("low", "move"), [(25, Try(97)), (24, Try(85))])
def test_a_line_that_reaches_further_than_four_times_what_ran_is_rough(low: int, move: Try) -> None:
    """By the line 100 would fit: almost all of that is tried, or 85 per cent."""
    assert next_move([fits(10, 280), fits(low, 200 + 8 * low)], WISHES) == move


@each(("low", "move"), [(90, Try(95)), (91, Try(2 * 91))])
def test_on_a_gpu_a_line_is_dropped_once_more_ran_than_it_allows(low: int, move: Try) -> None:
    """By the line through the smaller batches 90 would fit."""
    trials = [fits(10, 200, "gpu"), fits(50, 600, "gpu"), fits(low, 950, "gpu")]
    assert next_move(trials, WISHES) == move


STOP = Stop("bracketed")
SMALL, ODD = fits(10, 200), (fits(80, 850), fails(82, 1010))


@each(
    ("more", "wishes", "move"),
    [
        ((), WISHES, Try(92)),
        ((), WISHES._replace(largest=91), Try(85)),
        ((), WISHES._replace(largest=92), Try(92)),
        ((unmeasured(92),), WISHES, Try(85)),
        ((unmeasured(92), unmeasured(82)), WISHES, Try(85)),
        ((unmeasured(92), unmeasured(82), unmeasured(85)), WISHES, Try(89)),
        ((unmeasured(92), unmeasured(82)), WISHES._replace(largest=84), Try(82)),
        ((unmeasured(92), unmeasured(82)), WISHES._replace(largest=85), Try(85)),
        ((), WISHES._replace(trials=3), Stop("bracketed")),
    ],
)
def test_a_failure_beside_what_ran_is_doubted_where_both_were_measured_and_do_not_agree(
    more: tuple[Trial, ...], wishes: SearchWishes, move: Try | Stop
) -> None:
    """82 took 1010 of 1000 by chance: by the line there is room for 88."""
    assert next_move([SMALL, *ODD, *more], wishes) == move


def test_a_forecast_above_what_failed_is_tried_below_it() -> None:
    """80 took little and 90 took much by chance: by the line there is room for 102."""
    assert next_move([SMALL, fits(80, 700), fails(90, 1001)], WISHES) == Try(89)


AGREE = [fits(10, 180), fits(100, 990), fails(102, 1008)]


@each(
    ("looked", "move"),
    [(107, Try(114)), (108, STOP), (114, STOP), (130, STOP), (131, Try(114))],
)
def test_both_ends_that_agree_are_the_answer_once_somebody_has_looked_beyond(
    looked: int, move: Try | Stop
) -> None:
    assert next_move(AGREE, WISHES) == Try(114)
    assert next_move([*AGREE, unmeasured(looked)], WISHES) == move


@each(("seconds", "move"), [(473.0, Try(114)), (474.0, STOP)])
def test_nobody_looks_beyond_if_that_takes_too_long(seconds: float, move: Try | Stop) -> None:
    """Of the 480 s that may be used, 57 are left for steps that take 50 with 100 samples."""
    low = fits(100, 990)._replace(steps=5, step_seconds=10.0, seconds=seconds)
    assert next_move([AGREE[0], low, AGREE[2]], WISHES) == move


def test_on_a_gpu_nobody_looks_beyond_and_nobody_doubts_a_failure() -> None:
    agree = [fits(10, 200, "gpu"), fits(88, 980, "gpu"), fails(90, 1001, "gpu")]
    assert next_move(agree, WISHES) == STOP
    odd = [fits(10, 200, "gpu"), fits(80, 850, "gpu"), fails(82, 1010, "gpu")]
    assert next_move(odd, WISHES) == STOP


@each(("low", "move"), [(193, STOP), (192, Try(196))])
def test_without_counters_a_failure_within_3_5_per_cent_is_the_end(
    low: int, move: Try | Stop
) -> None:
    """201 failed, so 200 is the largest that may still fit."""
    ran = fits(low, 0)._replace(gauges=())
    assert next_move([ran, unmeasured(201)], WISHES) == move


@each(("low", "reason"), [(87, "predicted"), (86, "trials")])
def test_the_last_trial_settles_it_if_what_ran_is_close_to_a_forecast_from_both_sides(
    low: int, reason: StopReason
) -> None:
    """By the line 90 is the limit."""
    small, high = fits(10, 200, "gpu"), fails(100, 1100, "gpu")
    trials = [small, fits(low, 100 + 10 * low, "gpu"), high]
    assert next_move(trials, WISHES._replace(trials=3)) == Stop(reason)


def test_a_search_that_found_nothing_by_its_last_trial_leaves_smaller_batches_open() -> None:
    trials = [unmeasured(512), unmeasured(64)]
    assert next_move(trials, WISHES._replace(trials=2)) == Stop("trials")
    assert next_move(trials, WISHES._replace(trials=2, multiple_of=64)) == Stop("nothing-fits")


@each(
    ("failed", "move"),
    [((52,), Try(52)), ((52, 52), Try(58)), ((52, 52, 58), STOP)],
)
def test_one_failure_that_the_line_does_not_explain_is_tried_again_and_two_are_the_end(
    failed: tuple[int, ...], move: Try | Stop
) -> None:
    """By the line 90 would fit."""
    assert next_move([SMALL, fits(51, 610), *map(unmeasured, failed)], WISHES) == move


def test_a_step_whose_time_is_unknown_is_not_limited_by_time() -> None:
    slow = fits(10, 200)._replace(seconds=599.0)
    assert next_move([slow._replace(step_seconds=None)], WISHES) == Try(76)
    assert next_move([slow._replace(step_seconds=1.0)], WISHES) == Stop("too-slow")


def test_the_time_of_a_batch_is_from_the_trial_in_which_it_ran() -> None:
    failed = unmeasured(50)._replace(step_seconds=None)
    slow = fits(50, 600)._replace(step_seconds=1.0, seconds=599.0)
    assert next_move([SMALL, failed, slow], WISHES) == Stop("too-slow")


@each(("batch", "near"), [(71, False), (72, True), (90, True)])
def test_a_batch_comes_near_a_limit_that_refuses_from_four_fifths_on(
    batch: int, near: bool
) -> None:
    trials = [fits(10, 200, "address-space"), fits(50, 600, "address-space")]
    assert comes_near_refusal(trials, batch) is near
    assert not comes_near_refusal([fits(10, 200), fits(50, 600)], batch)


def shared(trial: Trial, seconds: float = 0.1) -> Trial:
    """In a process that has tried other batches before."""
    return trial._replace(alone=False, seconds=seconds)


NEAR = (fits(10, 200, "gpu"), shared(fits(88, 980, "gpu")))


@each(
    ("trials", "move"),
    [
        # 1 % apart: the largest that ran is tried in a new process.
        ((*NEAR, shared(unmeasured(89))), Try(88, alone=True)),
        ((*NEAR, shared(unmeasured(89)), fits(88, 980, "gpu")), Stop("bracketed")),
        # 3 % apart: enough only if a trial takes long.
        ((*NEAR, shared(unmeasured(91))), Try(89)),
        ((*NEAR, shared(unmeasured(91), 0.3)), Try(88, alone=True)),
    ],
)
def test_trials_that_share_a_process_go_closer_and_a_new_process_confirms_the_answer(
    trials: tuple[Trial, ...], move: Try | Stop
) -> None:
    assert next_move(trials, WISHES) == move


@each(
    ("more", "move"),
    [
        # 2 % below what failed in a new process, then 4 % below that.
        ((unmeasured(88),), Try(86, alone=True)),
        ((unmeasured(88), unmeasured(86)), Try(82, alone=True)),
        ((unmeasured(88), fits(86, 970, "gpu")), Stop("bracketed")),
        ((fits(88, 980, "gpu"), fits(89, 990, "gpu")), Try(93, alone=True)),
    ],
)
def test_if_a_new_process_contradicts_a_shared_one_only_new_ones_count(
    more: tuple[Trial, ...], move: Try | Stop
) -> None:
    assert next_move([*NEAR, shared(unmeasured(89)), *more], WISHES) == move


def test_three_tenths_of_a_trial_count_if_it_shares_a_process() -> None:
    """Nothing fails and nothing is measured, so that only the number of trials ends the search."""
    trials = [trial(8)]
    while isinstance(move := next_move(trials, WISHES), Try):
        trials.append(trial(move.batch) if move.alone else shared(trial(move.batch)))
    assert [each.alone for each in trials] == [True, *[False] * 37, True]
    assert move == Stop("trials")


@each(
    ("seconds", "alone"),
    [(0.25, False), (0.26, True), (0.9, True)],
)
def test_trials_near_the_limit_have_a_new_process_if_each_takes_long_by_itself(
    seconds: float, alone: bool
) -> None:
    """The first trial took 1 s; by the line, the limit is reached at 90."""
    trials = [fits(10, 200, "gpu"), shared(fits(60, 700, "gpu"), seconds)]
    move = next_move(trials, WISHES)
    assert move == Try(89, alone=alone)


def test_a_trial_far_below_the_limit_shares_a_process_also_if_it_takes_long() -> None:
    trials = [fits(1, 110, "gpu"), shared(fits(4, 140, "gpu"), 0.9)]
    move = next_move(trials, WISHES)
    assert isinstance(move, Try)
    assert move.batch < 81
    assert not move.alone


@each(
    ("sample", "name", "move"),
    [
        # 800 are left of 1000: 80 more samples by the estimate, of which 85 % are tried.
        (10, "gpu", Try(78)),
        # It says that hardly more fits.
        (1000, "gpu", Try(11)),
        (None, "gpu", Try(76)),
        # Main memory holds more than what is estimated.
        (5, "memory", Try(76)),
    ],
)
def test_an_estimate_of_a_sample_chooses_the_second_trial_on_a_gpu(
    sample: int | None, name: GaugeName, move: Try
) -> None:
    wishes = WISHES._replace(sample_bytes=sample and float(sample * MIB))
    assert next_move([fits(10, 200, name)], wishes) == move


def test_after_two_trials_an_estimate_does_not_count() -> None:
    trials = [fits(10, 200, "gpu"), fits(50, 600, "gpu")]
    assert next_move(trials, WISHES._replace(sample_bytes=1.0 * MIB)) == next_move(trials, WISHES)


SAVED = [
    *(fits(8, 11, "gpu"), fits(512, 157, "gpu"), fits(2306, 671, "gpu"), fits(2739, 786, "gpu")),
    fails(5478, 1576, "gpu"),
    *(fits(3291, 886, "gpu"), fits(3410, 900, "gpu")),
]
"""As JAX did with attention on an NVIDIA H200: its compiler saves memory where it has to."""


def test_a_forecast_that_two_batches_have_refuted_is_left_behind_quickly() -> None:
    move = next_move([*SAVED, fits(3533, 907, "gpu")], WISHES)
    assert isinstance(move, Try)
    assert move.batch > 1.2 * 3533


def test_what_a_refuted_forecast_says_is_no_answer_when_the_trials_are_used_up() -> None:
    more = [fits(batch, 910, "gpu") for batch in (3661, 3793, 3930, 4072)]
    assert next_move([*SAVED, *more], WISHES._replace(trials=len(SAVED + more))) == Stop("trials")
