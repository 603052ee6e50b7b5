"""Where memory reaches its limit, by the line through what the trials took. Pure.

batch_search.py says where its constants come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import NamedTuple

from whygpu.model.batch import Gauge, GaugeName, Trial

NOISE = 0.01
"""Part of what a step takes by which two runs of it differ, at least. docs/measured/memory-find.md
shows by how much real models do."""
_SMALLEST_NOISE = 4 << 20
"""Bytes by which two runs differ, however little the step takes. Not measured: a floor, so that a
step of a few bytes has a slope."""
_SAVES_FROM = 0.7
"""Part of a GPU's limit. From there on, a batch can run with less memory than the line says: a
compiler saves memory, or libraries do with less. Simulated: with 0 there are 5 % fewer close
answers on GPUs."""
_FLAT = 0.5
"""Times the steepest rise before: a smaller rise near the limit shows that. Simulated: with 0, the
search takes 0.9 trials more for compilers that save memory. Not 0.7: a line may bend."""
_ALL_STEPS = 3
"""A trial that has done so many steps was measured completely (tasks/trial.py does three)."""
_SAME_PLACE = (0.95, 1.3)
"""Times the largest batch that ran: trials in this range show the same place of the line."""
_APART = 0.75
"""Times the largest batch that ran: from so far below, noise changes the slope little."""


class Forecast(NamedTuple):
    """The largest batch by the line through what was measured."""

    gauge: Gauge
    """What runs out first, with the largest batch that ran."""
    limit: int
    """The limit of `gauge`, which is known where there is a forecast."""
    slope: float
    """Bytes for each sample."""
    surely: float
    """The forecast if noise hid a part of the slope, or what was measured was low by chance."""
    batch: float
    perhaps: float
    """The forecast if a part of the slope was noise, or what was measured was high by chance."""
    flattened: bool = False
    """Near the limit, memory has risen less than before: larger batches run with what is there, and
    the line does not say how many."""
    both_sides: bool = False
    """Batches above the limit were measured as well, so that the size of the noise is known."""
    scatter: float = 0.0
    """Part of the forecast by which the trials on both sides differ."""


class _Point(NamedTuple):
    batch: int
    before: int
    took: int


def forecast(trials: Sequence[Trial]) -> Forecast | None:
    """Where the first of the limits is reached; None if nothing was measured."""
    low = max((trial for trial in trials if trial.outcome == "fits"), key=_batch, default=None)
    if low is None:
        return None
    found = [
        _along_line(trials, gauge, gauge.limit, of)
        for gauge in low.gauges
        if gauge.limit is not None
        for of in ((_whole, _steady) if gauge.decides else (_steady,))
    ]
    return min(found, key=lambda each: each.batch, default=None)


def _measured(trial: Trial, name: GaugeName) -> Gauge | None:
    """What the batch needs, if that is known: because it ran, because it was allowed to run to its
    end although it took more than the limit, or because the framework says what was refused."""
    gauge = trial.gauge(name)
    if gauge is None or trial.outcome == "fits":
        return gauge
    over = trial.outcome == "does-not-fit" and gauge.limit and gauge.peak > gauge.limit
    return gauge if over and (trial.steps >= _ALL_STEPS or not gauge.decides) else None


def _batch(trial: Trial | _Point) -> int:
    return trial.batch


def _whole(gauge: Gauge) -> int:
    return gauge.peak


def _steady(gauge: Gauge) -> int:
    """Without loading and compiling, which may take more than a small batch does."""
    return gauge.steady


def _along_line(
    trials: Sequence[Trial], gauge: Gauge, limit: int, of: Callable[[Gauge], int]
) -> Forecast:
    points = [
        (trial.outcome, _Point(trial.batch, found.before, of(found)))
        for trial in sorted(trials, key=_batch)
        if (found := _measured(trial, gauge.name)) is not None
    ]
    fits = [point for outcome, point in points if outcome == "fits"]
    low = fits[-1]
    above = [point for _, point in points if point.batch > low.batch]
    if not above:
        return _from_below(fits, gauge, limit)
    if not gauge.decides and _has_flattened(fits, limit):
        return _in_proportion(above[0], gauge, limit)
    least, most = (times * low.batch for times in _SAME_PLACE)
    if above[0].batch > most:
        return _across([low, above[0]], fits, gauge, limit)
    near = [point for _, point in points if least <= point.batch <= most]
    return _across(near, fits, gauge, limit)


def _has_flattened(fits: Sequence[_Point], limit: int) -> bool:
    """Whether memory rises less than it did, although it is near the limit."""
    steepest = 0.0
    for smaller, larger in pairwise(fits):
        if larger.batch == smaller.batch:
            continue
        slope = (larger.took - smaller.took) / (larger.batch - smaller.batch)
        if larger.took > _SAVES_FROM * limit and slope <= _FLAT * steepest:
            return True
        steepest = max(steepest, slope)
    return False


def _in_proportion(above: _Point, gauge: Gauge, limit: int) -> Forecast:
    """By the batch that did not fit alone: those that ran took whatever there was."""
    slope = (above.took - gauge.before) / above.batch
    at = _reach(above.batch, limit - above.took, slope)
    return Forecast(
        gauge, limit, slope=slope, surely=at, batch=at, perhaps=at, both_sides=True, flattened=True
    )


def _from_below(fits: Sequence[_Point], gauge: Gauge, limit: int) -> Forecast:
    """By the batches that ran, from the largest of them."""
    batch, before, took = fits[-1]
    noise = max(NOISE * (took - before), _SMALLEST_NOISE)
    room = limit - took
    smaller = [point for point in fits if point.batch < batch]
    if not smaller:
        # As if all that the step took beside what was there before were the batch's.
        slope = max(took - before, _SMALLEST_NOISE) / batch
        reach = _reach(batch, room, slope)
        return Forecast(gauge, limit, slope=slope, surely=reach, batch=reach, perhaps=math.inf)
    distance = batch - smaller[-1].batch
    slope, error = _rising((took - smaller[-1].took) / distance, fits), noise / distance
    return Forecast(
        gauge,
        limit,
        slope=slope,
        surely=_reach(batch, room, slope + error),
        batch=_reach(batch, room, slope),
        perhaps=_reach(batch, room + noise, slope - error),
        flattened=not gauge.decides and _has_flattened(fits, limit),
    )


def _across(near: Sequence[_Point], fits: Sequence[_Point], gauge: Gauge, limit: int) -> Forecast:
    """By what was measured on both sides of the limit: the line through each trial reaches the
    limit somewhere, and these places differ by as much as runs do."""
    batch, took = fmean(map(_batch, near)), fmean(point.took for point in near)
    below = [point for point in fits if point.batch <= _APART * batch]
    if near[0].batch <= _APART * near[-1].batch:
        below = [near[0]]
    if below:
        slope = (took - below[-1].took) / (batch - below[-1].batch)
    else:
        slope = (took - fmean(point.before for point in near)) / batch
    slope = _rising(slope, [*fits, *near])
    if slope <= 0:
        return _from_below(fits, gauge, limit)
    places = [_reach(point.batch, limit - point.took, slope) for point in near]
    noise = max(NOISE * (took - near[-1].before), _SMALLEST_NOISE) / slope
    error = max(noise, stdev(places)) / math.sqrt(len(places))
    at = fmean(places)
    return Forecast(
        gauge,
        limit,
        slope=slope,
        surely=at - error,
        batch=at,
        perhaps=at + error,
        both_sides=True,
        scatter=stdev(places) / at,
    )


def _rising(slope: float, points: Sequence[_Point]) -> float:
    """The slope, or the steepest rise so far: if memory fell with the last batch, it will rise
    again."""
    if slope > 0:
        return slope
    return max(
        (right.took - left.took) / (right.batch - left.batch)
        for left, right in pairwise(sorted(points))
        if right.batch > left.batch
    )


def _reach(batch: float, room: float, slope: float) -> float:
    return batch + room / slope if slope > 0 else math.inf
