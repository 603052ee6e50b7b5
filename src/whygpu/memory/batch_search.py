"""The search for the largest batch that fits, as a pure function from trials to the next one.

Memory is close to an affine function of the batch: what the first trials took predicts where the
limit is reached. A prediction is never the answer. It chooses the next trial, so that few are
needed. The largest batch that ran and the smallest larger one that did not are the bracket, and a
wrong prediction only moves one of its ends.

Several trials may share a process (Trial.alone is false for all but its first). If that makes them
cheap, the search makes more of them and goes closer, but the answer is always a batch that ran in a
new process. Where the two contradict each other, only new processes count. If they are not cheap,
because each batch is compiled, those near the limit get a new process at once.

Constants of this module, of batch_aim.py and of forecast.py that are marked "simulated" were chosen
with `python -m benchmarks.find_simulated`, which shows what another value does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from whygpu.memory import batch_aim
from whygpu.memory.batch_aim import on_grid
from whygpu.memory.forecast import NOISE, Forecast, forecast
from whygpu.model.batch import SearchWishes, Trial

MOST_TRIALS = 12
"""Simulated: 99.7 % of the searches end by themselves before that, after 6.5 trials on average.
With 10, half of them do not where the counters show up to five times what is needed."""
_TRIALS_WITH_DOUBT = 10
"""After so many trials, a failure close above what ran is believed, even if the line contradicts
it. Simulated: with 12, the search takes more trials where memory jumps, and comes no closer."""
_SHARED_COST = 0.3
"""What a trial in a process that tried before counts for, of those."""
_FINELY = 0.01
"""The part that the two ends of the bracket may be apart, if further trials take little time."""
_LITTLE_TIME = 0.25
"""Times the seconds of the first trial, which has started its process."""
FIRST_BATCH = 8
"""Not 1: layers that normalise over the batch refuse to train with one sample."""
_NEAR_ANSWER = 0.9
"""Part of the forecast, or of the smallest batch that failed: from there on, a batch may be the
answer. Simulated: 0.8 and 0.95 take as long."""
_SHRINK = 8
"""The first batch is divided by this until one fits: from 512 down to 1 in four trials."""
_LOOK_BEYOND = 1.15
"""Times the answer: where one trial looks for a larger batch that takes less main memory.
Simulated: without it, 7 % fewer answers are close where such a batch exists."""
_LOOKED_BEYOND = (1.08, 1.3)
"""Times the answer: a trial in this range has looked already."""
_NEAR_REFUSAL = 0.8
"""Part of the forecast from which on a process may be refused memory. Not measured: the forecast is
within a few per cent by then, and a batch below is far from the limit."""
_USABLE_TIME = 0.8
"""Part of the time limit that a trial may be expected to take. Not measured: a reserve for steps
that take longer than in proportion to their batch."""

StopReason = Literal[
    "bracketed", "predicted", "at-largest", "nothing-fits", "leaks", "failed", "too-slow", "trials"
]
"""`bracketed` both ends were run; `predicted` the upper end follows from what was measured;
`at-largest` the largest batch asked for fits; `trials` there are no trials left."""


class Try(NamedTuple):
    batch: int
    alone: bool = False
    """In a new process."""


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
    valid = uncontradicted(trials)
    wishes = wishes._replace(close=_close(trials, wishes))
    low, high = bracket(valid)
    contradicted = len(valid) < len(trials)
    confirmed = low is None or _ran_alone(valid, low)
    if contradicted and high == trials[-1].batch:
        below = _below_contradiction(valid, wishes, high)
        if below < high and (low is None or below > low or not confirmed):
            return Try(max(below, low or 0), alone=True)
    move = _next_valid(valid, wishes)
    if isinstance(move, Stop):
        return move if low is None or confirmed else Try(low, alone=True)
    return move._replace(alone=contradicted or _may_be_the_answer(valid, move.batch))


def uncontradicted(trials: Sequence[Trial]) -> list[Trial]:
    """The trials without those in a shared process that one in a new process contradicts."""
    alone = [trial for trial in trials if trial.alone]
    fits = max((trial.batch for trial in alone if trial.outcome == "fits"), default=0)
    fails = min((t.batch for t in alone if t.outcome == "does-not-fit"), default=math.inf)
    return [
        trial
        for trial in trials
        if trial.alone or (trial.batch < fails if trial.outcome == "fits" else trial.batch > fits)
    ]


def _below_contradiction(trials: Sequence[Trial], wishes: SearchWishes, high: int) -> int:
    """A little below what failed in a new process: it ran in a shared one, so it failed narrowly.
    The more failed in new processes, the further below."""
    failures = sum(trial.alone and trial.outcome == "does-not-fit" for trial in trials)
    return on_grid(high * (1 - _FINELY * 2.0**failures), wishes)


def _ran_alone(trials: Sequence[Trial], batch: int) -> bool:
    return any(t.alone and t.batch == batch and t.outcome == "fits" for t in trials)


def _close(trials: Sequence[Trial], wishes: SearchWishes) -> float:
    quick = _slowest_shared(trials) <= _LITTLE_TIME * trials[0].seconds
    return _FINELY if quick and len(uncontradicted(trials)) == len(trials) else wishes.close


def _may_be_the_answer(trials: Sequence[Trial], batch: int) -> bool:
    """Whether a trial should have a new process because it comes near the limit: if it fits, it may
    be the answer, and to run it again in one would take as long as the trial."""
    slowest = _slowest_shared(trials)
    seen = forecast(trials)
    if seen is None or not _LITTLE_TIME * trials[0].seconds < slowest < math.inf:
        return False
    _, high = bracket(trials)
    limit = seen.batch if high is None else min(seen.batch, high)
    return batch >= _NEAR_ANSWER * limit


def _slowest_shared(trials: Sequence[Trial]) -> float:
    """Seconds of the longest trial that shared a process; infinite if there is none."""
    return max((trial.seconds for trial in trials if not trial.alone), default=math.inf)


def _spent(trials: Sequence[Trial], wishes: SearchWishes) -> bool:
    return sum(1.0 if trial.alone else _SHARED_COST for trial in trials) >= wishes.trials


def _next_valid(trials: Sequence[Trial], wishes: SearchWishes) -> Try | Stop:
    low, high = bracket(trials)
    if low is None:
        return _downwards(trials, wishes)
    stop = _reason_to_stop(trials, wishes, low, high)
    if stop is not None:
        beyond = _beyond(trials, wishes, low) if stop in ("bracketed", "predicted") else None
        return Stop(stop) if beyond is None else Try(beyond)
    batch = _next_batch(trials, wishes, low, high)
    slowest = _largest_in_time(trials, wishes, low)
    if batch > slowest:
        batch = on_grid(slowest, wishes)
        if batch <= low:
            return Stop("too-slow")
    return Try(batch)


def bracket(trials: Sequence[Trial]) -> tuple[int | None, int | None]:
    """The largest batch that ran, and the smallest larger one that did not."""
    low = max((trial.batch for trial in trials if trial.outcome == "fits"), default=None)
    above = [trial.batch for trial in trials if low is None or trial.batch > low]
    return low, min(above, default=None)


def comes_near_refusal(trials: Sequence[Trial], batch: int) -> bool:
    """Whether this batch comes near a limit at which requests are refused (ulimit -v), by what
    smaller ones took. At other limits the process is stopped, or its framework names the cause."""
    seen = forecast(trials)
    if seen is None or seen.gauge.name != "address-space":
        return False
    return batch >= _NEAR_REFUSAL * seen.batch


def _downwards(trials: Sequence[Trial], wishes: SearchWishes) -> Try | Stop:
    """What to do while nothing has fitted."""
    smallest = min(trial.batch for trial in trials)
    if smallest == wishes.multiple_of:
        return Stop("nothing-fits")
    if _spent(trials, wishes):
        return Stop("trials")
    return Try(on_grid(smallest // _SHRINK, wishes))


def _reason_to_stop(
    trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int | None
) -> StopReason | None:
    if wishes.largest is not None and low + wishes.multiple_of > wishes.largest:
        return "at-largest"
    if high is not None and _is_narrow(wishes, low, high):
        return None if _is_doubtful(trials, wishes, low) else "bracketed"
    seen = forecast(trials)
    if seen is not None and seen.gauge.decides and low >= seen.perhaps * (1 - wishes.close):
        return "predicted"
    if not _spent(trials, wishes):
        return None
    if seen is None or not seen.both_sides:
        return "trials"
    # If much more ran than the line allows, it says nothing about what is above.
    near = seen.batch * (1 - wishes.close) <= low <= seen.perhaps / (1 - wishes.close)
    return "predicted" if near else "trials"


def _next_batch(trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int | None) -> int:
    if high is None:
        aim = on_grid(batch_aim.upwards(trials, wishes, low), wishes)
        return max(aim, low + wishes.multiple_of)
    seen = forecast(trials)
    if seen is not None and seen.both_sides:
        return _between_measured(trials, wishes, low, high, seen)
    if _is_narrow(wishes, low, high):
        return high
    return _within(batch_aim.between(trials, wishes, low, high), wishes, low, high)


def _within(aim: float, wishes: SearchWishes, low: int, high: int) -> int:
    """The batch for an aim, strictly between the two ends of the bracket if there is one."""
    step = wishes.multiple_of
    return min(max(on_grid(aim, wishes), low + step), high - step)


def _between_measured(
    trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int, seen: Forecast
) -> int:
    """The next batch if the upper end of the bracket was measured as well."""
    if not _is_narrow(wishes, low, high):
        aim = batch_aim.below_forecast(trials, wishes, low, high, seen)
        return _within(aim, wishes, low, high)
    beyond = _beyond(trials, wishes, low)
    return _above(trials, wishes, high) if beyond is None else beyond


def _above(trials: Sequence[Trial], wishes: SearchWishes, high: int) -> int:
    """The next batch above the upper end that was not tried."""
    tried = {trial.batch for trial in trials}
    batch = high
    while batch in tried:
        batch = on_grid(batch / (1 - wishes.close), wishes) + wishes.multiple_of
    return batch if wishes.largest is None or batch <= wishes.largest else high


def _beyond(trials: Sequence[Trial], wishes: SearchWishes, low: int) -> int | None:
    """A batch above the answer, if none was tried there yet.

    A larger batch can take less main memory: from 32 MiB on, malloc returns an array to the system
    as soon as it is freed, and it keeps smaller ones.
    """
    seen = forecast(trials)
    if seen is None or seen.gauge.on_gpu:
        return None
    nearest, furthest = (low * times for times in _LOOKED_BEYOND)
    batch = on_grid(low * _LOOK_BEYOND, wishes)
    tried = {trial.batch for trial in trials}
    looked = batch in tried or any(nearest <= each <= furthest for each in tried)
    too_far = wishes.largest is not None and batch > wishes.largest
    if looked or too_far or _spent(trials, wishes):
        return None
    return batch if batch <= _largest_in_time(trials, wishes, low) else None


def _is_narrow(wishes: SearchWishes, low: int, high: int) -> bool:
    return low >= (high - wishes.multiple_of) * (1 - wishes.close)


def _is_doubtful(trials: Sequence[Trial], wishes: SearchWishes, low: int) -> bool:
    """Whether more than what ran may fit, although what failed is close to it.

    On the CPU a step can take one activation more in one run than in the next: it depends on which
    operations happen to run at the same time, and on where malloc has its holes. If what failed was
    measured, all trials near the limit count. Otherwise: it should have fitted by the line, and
    failed only once.
    """
    seen = forecast(trials)
    if seen is None or seen.gauge.on_gpu or _spent(trials, wishes):
        return False
    if len(trials) >= _TRIALS_WITH_DOUBT:
        return False
    if seen.both_sides:
        return low < seen.perhaps * (1 - wishes.close)
    failed = [trial.batch for trial in trials if trial.outcome == "does-not-fit"]
    return sum(batch * (1 + NOISE) < seen.batch for batch in failed) == 1


def _largest_in_time(trials: Sequence[Trial], wishes: SearchWishes, low: int) -> float:
    """The largest batch that is done in time, if a step takes time in proportion to its batch.
    Below 0 if everything else takes longer than that."""
    trial = next(trial for trial in trials if trial.batch == low and trial.outcome == "fits")
    if not trial.step_seconds:
        return math.inf
    working = trial.steps * trial.step_seconds
    left = _USABLE_TIME * wishes.timeout - (trial.seconds - working)
    return low * left / working
