"""The search for the largest batch that fits, as a pure function from trials to the next one.

Memory is close to affine in the batch: what the first trials took predicts where the limit is
reached. A prediction is never the answer. It chooses the next trial, so that few are needed; what
ran and what did not are the bracket, and a wrong prediction only moves one of its ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from whygpu.memory.forecast import NOISE, Forecast, forecast
from whygpu.model.batch import SearchWishes, Trial

MOST_TRIALS = 7
FIRST = 8
"""The batch to begin with: a layer that normalises over the batch refuses to train with one."""

CLOSE = 0.035
"""The bracket is narrow enough: what ran is within this of what may still fit."""
_STILL_CLOSE = 0.045
_MANY = 6
"""Trials, from which on that is close enough."""
_NEAR = 0.025
"""Where the upper end is a prediction."""
_ON_THE_WAY = 0.85
"""Of a rough forecast: the next trial is to fit, because only then is it measured."""
_GROWTH = 4
"""Times what fits, where nothing is known of the slope."""
_BLIND_GROWTH = 8
_CAREFUL = 0.98
_LARGEST_GROWTH = 64
_LEAP = 1.6
"""Times what fits, where the line does not hold: what fails says more than what creeps."""
_FROM_NEAR = 0.6
_FAR = 0.3
"""Of what failed: from so far below, it was not by a hair."""
_BY_A_HAIR = 1.25
"""Times what failed: where a line reaches further, it does not explain the failure."""
_WITHOUT_HOLES = 0.97
"""Of a GPU's memory, as far as its allocator gets in practice."""
_SHRINK = 8
_BEYOND = 1.15
"""Times the answer: as far as one trial looks for a larger batch that takes less."""
_LOOKED = (1.08, 1.3)
"""Times the answer: where a failure shows that there is none."""
_FURTHER = 1.05
"""Times all else that is known: where a larger batch says that it has taken less."""
_TWICE = 2
_NEARLY = 0.8
_TIME_KEPT = 0.8

StopReason = Literal[
    "bracketed", "predicted", "at-largest", "nothing-fits", "leaks", "failed", "too-slow", "trials"
]
"""`bracketed` both ends were run; `predicted` the upper end follows from what was measured;
`at-largest` the largest batch asked for fits; `trials` there are no trials left."""


class Try(NamedTuple):
    batch: int


class Stop(NamedTuple):
    reason: StopReason


def next_move(trials: Sequence[Trial], wishes: SearchWishes) -> Try | Stop:
    """What to do after these trials."""
    if not trials:
        most = wishes.start if wishes.largest is None else min(wishes.start, wishes.largest)
        return Try(on_grid(most, wishes))
    last = trials[-1].outcome
    if last == "leaks" or last == "failed" or last == "too-slow":
        return Stop(last)
    low, high = bracket(trials)
    stop = _reason_to_stop(trials, wishes, low, high)
    if stop is not None:
        beyond = _beyond(trials, wishes, low) if stop in ("bracketed", "predicted") else None
        return Stop(stop) if beyond is None else Try(beyond)
    if low is None:
        assert high is not None
        return Try(on_grid(high // _SHRINK, wishes))
    seen = forecast(trials)
    if high is not None and seen is not None and seen.both_sides:
        batch = _across(trials, wishes, low, high, seen)
    elif high is not None and _closed(trials, wishes, low, high):
        batch = high
    else:
        batch = on_grid(_aim(trials, wishes, low, high), wishes)
        batch = max(batch, low + wishes.multiple_of)
        if high is not None:
            batch = min(batch, high - wishes.multiple_of)
    slowest = _time_allows(trials, wishes, low)
    if batch > slowest:
        batch = on_grid(slowest, wishes)
        if batch <= low:
            return Stop("too-slow")
    return Try(batch)


def on_grid(batch: float, wishes: SearchWishes) -> int:
    """The next batch below that may be tried."""
    step = wishes.multiple_of
    return max(math.floor(batch / step) * step, step)


def bracket(trials: Sequence[Trial]) -> tuple[int | None, int | None]:
    """The largest batch that ran, and the smallest larger one that did not."""
    low = max((trial.batch for trial in trials if trial.outcome == "fits"), default=None)
    above = [
        trial.batch
        for trial in trials
        if trial.outcome != "fits" and (low is None or trial.batch > low)
    ]
    return low, min(above, default=None)


def comes_near_refusal(trials: Sequence[Trial], batch: int) -> bool:
    """Whether this batch comes near a limit at which requests are refused, by what smaller ones
    took. At the others a process is ended instead, or its framework says what has run out."""
    seen = forecast(trials)
    if seen is None or seen.gauge.name != "address-space":
        return False
    return batch >= _NEARLY * seen.batch


def _close_enough(trials: Sequence[Trial]) -> float:
    """The more trials it has taken, the less another one is worth."""
    return CLOSE if len(trials) < _MANY else _STILL_CLOSE


def _reason_to_stop(
    trials: Sequence[Trial], wishes: SearchWishes, low: int | None, high: int | None
) -> StopReason | None:
    step = wishes.multiple_of
    if low is None:
        if high == step:
            return "nothing-fits"
    else:
        if wishes.largest is not None and low + step > wishes.largest:
            return "at-largest"
        if high is not None and _closed(trials, wishes, low, high):
            return None if _is_doubtful(trials, wishes, low) else "bracketed"
        seen = forecast(trials)
        if seen is not None and seen.gauge.decides and low >= seen.perhaps * (1 - _NEAR):
            return "predicted"
        last = len(trials) >= wishes.trials
        if last and seen is not None and seen.both_sides and low >= seen.batch * (1 - _STILL_CLOSE):
            return "predicted"
    return "trials" if len(trials) >= wishes.trials else None


def _beyond(trials: Sequence[Trial], wishes: SearchWishes, low: int | None) -> int | None:
    """A batch past the end that was found, if nobody has looked there yet.

    In the computer's memory a larger batch can take less: from 32 MiB on, malloc gives an array
    back as soon as it is freed, and keeps smaller ones.
    """
    seen = forecast(trials)
    if low is None or seen is None or seen.gauge.on_gpu:
        return None
    nearest, furthest = (low * times for times in _LOOKED)
    batch = on_grid(low * _BEYOND, wishes)
    tried = {trial.batch for trial in trials}
    looked = batch in tried or any(nearest <= each <= furthest for each in tried)
    too_far = wishes.largest is not None and batch > wishes.largest
    if looked or too_far or len(trials) >= wishes.trials:
        return None
    return batch if batch <= _time_allows(trials, wishes, low) else None


def _closed(trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int) -> bool:
    return low >= (high - wishes.multiple_of) * (1 - _close_enough(trials))


def _is_doubtful(trials: Sequence[Trial], wishes: SearchWishes, low: int) -> bool:
    """Whether more than what ran may fit, although what failed is close to it.

    On the CPU a step can take an activation more in one run than in the next, by which operations
    happen to run at the same time and where malloc has its holes. Where what failed was measured,
    all that is near the limit tells. Else it should have fitted by the line, and what has failed
    more than once is no accident.
    """
    seen = forecast(trials)
    if seen is None or seen.gauge.on_gpu or len(trials) >= wishes.trials:
        return False
    if seen.both_sides:
        return low < seen.perhaps * (1 - _NEAR)
    failed = [trial.batch for trial in trials if trial.outcome == "does-not-fit"]
    return sum(batch * (1 + NOISE) < seen.batch for batch in failed) == 1


def _across(
    trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int, seen: Forecast
) -> int:
    """The batch to try next where what is too large was measured as well."""
    tried = [trial.batch for trial in trials]
    further = on_grid(seen.further * (1 - NOISE), wishes)
    new = all(abs(further - each) > NOISE * each for each in tried)
    if new and further >= _FURTHER * max(seen.batch, low):
        return further
    if not _closed(trials, wishes, low, high):
        aim = max(seen.batch * (1 - _room_for_error(trials, low)), low / (1 - CLOSE))
        return min(max(on_grid(aim, wishes), low + wishes.multiple_of), high - wishes.multiple_of)
    beyond = _beyond(trials, wishes, low)
    return _untried(tried, wishes, high) if beyond is None else beyond


def _untried(tried: Sequence[int], wishes: SearchWishes, high: int) -> int:
    """The upper end once more, or what is above it."""
    batch = high
    while tried.count(batch) >= (_TWICE if batch == high else 1):
        batch = on_grid(batch / (1 - CLOSE), wishes) + wishes.multiple_of
    return batch if wishes.largest is None or batch <= wishes.largest else high


def _aim(trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int | None) -> float:
    """The batch to try next, before it is fitted between what is known."""
    seen = forecast(trials)
    below = [trial for trial in trials if trial.outcome == "fits" and trial.batch < low]
    if seen is None:
        aim = low * _GROWTH if high is None else math.sqrt(low * high)
    elif not below:
        # A low promise, since not all that the first steps took was the batch's.
        promise = max(seen.batch * _ON_THE_WAY, low)
        if high is None:
            aim = max(promise, low * _GROWTH)
        else:
            aim = math.sqrt(promise * high) if seen.batch < high else (low + high) / 2
    else:
        aim = _along(seen, low)
        if len(trials) == wishes.trials - 1:
            # There is no time left to find out by how much the last one was too large.
            aim = max(low, aim * _CAREFUL)
    if high is None:
        aim = min(aim, low * _LARGEST_GROWTH)
        if (seen is not None and seen.fallen) or _refuted(below, low):
            aim = low * _LEAP
        elif aim < low / (1 - CLOSE):
            # What closes the bracket if it fails.
            aim = low / (1 - CLOSE) + wishes.multiple_of
        return aim if wishes.largest is None else min(aim, wishes.largest)
    if seen is not None and seen.batch > _BY_A_HAIR * high:
        # Something else than what is measured has run out.
        return (low + high) / 2
    if aim >= high * (1 - CLOSE):
        return _inside(trials, low, high)
    return max(aim, low / (1 - CLOSE))


def _room_for_error(trials: Sequence[Trial], low: int) -> float:
    """The more often the line has promised too much, the less is left of it."""
    return NOISE * 2.0 ** max(_trials_since(trials, low) - 1, 0)


def _trials_since(trials: Sequence[Trial], low: int) -> int:
    """How often it was tried since the line was drawn, which the largest that ran is the end of."""
    drawn = max(place for place, trial in enumerate(trials) if trial.batch == low)
    return len(trials) - 1 - drawn


def _along(seen: Forecast, low: int) -> float:
    # Slow growth is safe, and learns nothing where noise is all there is.
    aim = max(seen.surely, min(low * _GROWTH, seen.batch * _ON_THE_WAY))
    hidden = seen.hidden and seen.gauge.name == "gpu"
    if hidden or seen.batch - low > 2 * (seen.surely - low):
        # The slope is no more than noise: what small batches take may be hidden by what is there.
        aim = min(aim, low * _BLIND_GROWTH)
    if seen.batch > _GROWTH * low:
        # So far out, no line is good enough to be the last one.
        aim = min(aim, seen.batch * _ON_THE_WAY)
    return aim if seen.gauge.decides else aim * _WITHOUT_HOLES


def _refuted(below: Sequence[Trial], low: int) -> bool:
    """Whether what fits should not have, by the line through what is below it: its counters
    exaggerate, and tell the less the nearer they come to the limit."""
    line = forecast(below) if len(below) > 1 else None
    return line is not None and not line.gauge.decides and line.batch < low


def _inside(trials: Sequence[Trial], low: int, high: int) -> float:
    """Where the line says that what failed should have fitted: it failed by a hair, or the line
    does not hold. The more often it has failed since it was drawn, the less is left of it."""
    failures = _trials_since(trials, low)
    if low < _FAR * high:
        return math.sqrt(low * high)
    near = low > _FROM_NEAR * high
    back = CLOSE * (2.0 if near else 3.0) ** max(failures - near, 0)
    return float(max(high * (1 - back), (low + high) / 2))


def _time_allows(trials: Sequence[Trial], wishes: SearchWishes, low: int) -> float:
    """The largest batch that is done in time, if a step takes time in proportion to its batch."""
    trial = next(trial for trial in trials if trial.batch == low and trial.outcome == "fits")
    if not trial.step_seconds:
        return math.inf
    at_work = trial.steps * trial.step_seconds
    spare = _TIME_KEPT * wishes.timeout - (trial.seconds - at_work)
    return low * max(spare, 0.0) / at_work
