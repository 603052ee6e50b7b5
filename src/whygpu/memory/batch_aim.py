"""Which batch the search tries next: a number to aim at, by the line through the trials. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whygpu.memory.forecast import NOISE, Forecast, forecast
from whygpu.model.batch import SearchWishes, Trial

_GROWTH = 4
"""Times what ran, if the slope is unknown or does not hold. Simulated: with 8 there are 6 % fewer
close answers where memory jumps; with 2 it takes 0.3 trials more where memory is noisy."""
_GROWTH_OFF_LINE = 2
"""Times what ran although the line did not allow it. Simulated: with 4, a tenth fewer answers are
close after ten trials where the counters show more than is needed; with 1.3 as well."""
_LARGEST_GROWTH = 64
"""Times what ran, at most: a slope near 0 predicts no limit at all. Simulated: with 16 there are a
quarter fewer close answers for compilers that save memory; 256 is no better."""
_ROUGH_PART = 0.85
"""Part of a rough forecast to aim at: a trial that fits is measured, one that fails mostly is not.
Simulated: with 0.9 there are 7 % fewer close answers where memory jumps; 0.8 is no better."""
_ESTIMATED_PART = 0.85
"""Part of what fits by the estimate of a sample, to aim at. Simulated, with estimates that are off
by a tenth and a compiler: with 0.7 and 0.95, searches on GPUs take 3 % longer."""
_FAR_BELOW = 0.5
"""If what ran is below this part of what failed although it should have fitted, the line from it
says little, and the search bisects. Simulated: with 0.3, 8 % of the searches do not settle where
workspaces are not counted; 0.7 is no better."""
_UNEXPLAINED = 1.25
"""Times what failed. If the forecast is higher than this, something ran out that is not measured,
and the line says nothing about it. Simulated, with a refusal at 15 to 95 % of the forecast: without
it, the answer is 9 % too low on average, with it 6 %."""
_FAILED_AGAIN = 2.0
"""How many times further below a failure to aim, for each failure that the line does not explain.
Simulated: 3 and 4 are no better."""

_REFUTED_BY = 2
"""Batches that ran above a forecast from both sides. Seen with attention in JAX: the compiler needs
less for a batch than the line through larger and smaller ones says, and each trial came 4 % closer.
"""
_RAN_AGAIN = 2.0
"""The same above a batch that ran although, by the line, it is the last that fits."""


def on_grid(batch: float, wishes: SearchWishes) -> int:
    """The next batch below that may be tried."""
    step = wishes.multiple_of
    return max(math.floor(batch / step) * step, step)


def upwards(trials: Sequence[Trial], wishes: SearchWishes, low: int) -> float:
    """The aim while nothing above `low` has failed."""
    seen = forecast(trials)
    below = _smaller_that_ran(trials, low)
    if seen is None:
        aim: float = low * _GROWTH
    elif seen.flattened or _is_refuted(below, low):
        aim = low * _GROWTH_OFF_LINE
    elif below:
        aim = min(_along_line(seen, low), low * _LARGEST_GROWTH)
    elif wishes.sample_bytes is not None and seen.gauge.on_gpu:
        aim = low + _ESTIMATED_PART * (seen.limit - seen.gauge.steady) / wishes.sample_bytes
    else:
        aim = min(max(_rough(seen, low), low * _GROWTH), low * _LARGEST_GROWTH)
    if aim < low / (1 - wishes.close):
        # If this fails, the bracket is narrow enough.
        aim = low / (1 - wishes.close) + wishes.multiple_of
    return aim if wishes.largest is None else min(aim, wishes.largest)


def between(trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int) -> float:
    """The aim between what ran and what failed without being measured."""
    seen = forecast(trials)
    if seen is not None and seen.batch > _UNEXPLAINED * high:
        return (low + high) / 2
    below = _smaller_that_ran(trials, low)
    if seen is None or seen.flattened or _is_refuted(below, low):
        return math.sqrt(low * high)
    if below:
        aim = _along_line(seen, low)
    elif seen.batch < high:
        aim = math.sqrt(_rough(seen, low) * high)
    else:
        aim = (low + high) / 2
    if aim >= high * (1 - wishes.close):
        return _below_failure(trials, wishes, low, high)
    least = low / (1 - wishes.close)
    return aim if aim > least else _above_success(trials, wishes, low, high)


def below_forecast(
    trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int, seen: Forecast
) -> float:
    """The aim between what ran and what failed, if both were measured: a little less than the
    forecast, and the less the more often the forecast was too high."""
    reserve = NOISE * 2.0 ** max(_trials_since(trials, low) - 1, 0)
    aim = max(seen.batch * (1 - reserve), low / (1 - wishes.close))
    if seen.gauge.decides or seen.batch > low or _ran_since_failure(trials, high) < _REFUTED_BY:
        return aim
    return max(aim, _above_success(trials, wishes, low, high))


def _smaller_that_ran(trials: Sequence[Trial], low: int) -> list[Trial]:
    return [trial for trial in trials if trial.outcome == "fits" and trial.batch < low]


def _rough(seen: Forecast, low: int) -> float:
    """By a line through one trial, which counts all that the step took as the batch's."""
    return max(seen.batch * _ROUGH_PART, low)


def _along_line(seen: Forecast, low: int) -> float:
    # If the slope may be noise, `surely` barely rises, and a trial that close shows nothing new.
    aim = max(seen.surely, min(low * _GROWTH, seen.batch * _ROUGH_PART))
    if seen.batch > _GROWTH * low:
        # So far above what ran, the line is rough.
        aim = min(aim, seen.batch * _ROUGH_PART)
    return aim


def _is_refuted(below: Sequence[Trial], low: int) -> bool:
    """Whether `low` ran although it should not have, by the line through smaller batches: then the
    framework's counters show more than it needs."""
    line = forecast(below) if len(below) > 1 else None
    return line is not None and not line.gauge.decides and line.batch < low


def _below_failure(trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int) -> float:
    """The aim if, by the line, what failed should have fitted: it failed narrowly, or the line does
    not hold. The more trials failed above what ran, the further below."""
    middle = (low + high) / 2
    if low < _FAR_BELOW * high:
        return middle
    failures = sum(each.outcome == "does-not-fit" and each.batch > low for each in trials)
    return max(high * (1 - wishes.close * _FAILED_AGAIN**failures), middle)


def _above_success(trials: Sequence[Trial], wishes: SearchWishes, low: int, high: int) -> float:
    """The aim if, by the line, hardly more than what ran can fit. The more trials ran since the
    failure above, the further: the line then predicts too little each time."""
    ran = _ran_since_failure(trials, high)
    least = low / (1 - wishes.close)
    return max(min(low * (1 + wishes.close * _RAN_AGAIN**ran), (low + high) / 2), least)


def _ran_since_failure(trials: Sequence[Trial], high: int) -> int:
    failed = max(place for place, trial in enumerate(trials) if trial.batch == high)
    return sum(trial.outcome == "fits" for trial in trials[failed:])


def _trials_since(trials: Sequence[Trial], low: int) -> int:
    """How many trials came after that of the largest batch that ran, where the line ends."""
    drawn = max(place for place, trial in enumerate(trials) if trial.batch == low)
    return len(trials) - 1 - drawn
