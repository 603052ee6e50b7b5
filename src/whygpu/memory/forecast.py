"""Where memory reaches its limit, by the line through what the trials took. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import NamedTuple

from whygpu.model.batch import Gauge, GaugeName, Trial

NOISE = 0.01
"""What the same step takes differs by this part of it from run to run, at least."""
_SMALLEST_NOISE = 4 << 20
_HIDDEN = 0.3
"""Of what the step takes: where a larger batch takes no more than this on top of it, what does
not grow with the batch, such as an optimiser's update, may hide what does."""
_SAVES_FROM = 0.7
"""Of a GPU's limit."""
_ALL_STEPS = 3
"""A trial that has done so many has been measured to its end."""
_NEAR = (0.95, 1.3)
"""Times the largest batch that ran: what tells of the same place on the line."""
_CHORD = 0.5
"""Of the slope from the first to the last: as flat as neighbours may say that it has become."""
_APART = 0.75
"""Times the largest batch that ran: so far below, noise does not bend the slope much."""


class Forecast(NamedTuple):
    """The largest batch by the line through what was measured."""

    gauge: Gauge
    """What runs out first, with the largest batch that ran."""
    slope: float
    """Bytes for each sample."""
    surely: float
    """If noise hid a part of the slope, or what was measured was low by chance."""
    batch: float
    perhaps: float
    """If a part of the slope was noise, or what was measured was high by chance."""
    hidden: bool = False
    """Most of what the steps took is not the batch's: a part of it that is may not show yet."""
    fallen: bool = False
    """Near the limit a larger batch has taken less: a compiler has begun to save memory."""
    both_sides: bool = False
    """What is above the limit was measured as well, so that chance is known by what it did."""
    further: float = 0.0
    """By the largest batch of these alone: more than the others say where memory has fallen."""
    scatter: float = 0.0
    """By which part of it they differ."""


class _Point(NamedTuple):
    batch: int
    before: int
    took: int


def forecast(trials: Sequence[Trial]) -> Forecast | None:
    """Where the first of the limits is reached; None where nothing tells."""
    low = max((trial for trial in trials if trial.outcome == "fits"), key=_batch, default=None)
    if low is None:
        return None
    found = [
        _along_line(trials, low.batch, gauge, of)
        for gauge in low.gauges
        if gauge.limit is not None
        for of in ((_whole, _steady) if gauge.decides else (_steady,))
    ]
    return min(found, key=lambda each: each.batch, default=None)


def _measured(trial: Trial, name: GaugeName) -> Gauge | None:
    """What the batch needs, where that is known: it ran; it was let run to its end although it
    took more than the limit; or it was told how much it asked for in vain."""
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
    """Where loading and compiling take the most, it alone tells what the batch takes."""
    return gauge.steady


def _along_line(
    trials: Sequence[Trial], low: int, gauge: Gauge, of: Callable[[Gauge], int]
) -> Forecast:
    points = [
        (trial.outcome, _Point(trial.batch, found.before, of(found)))
        for trial in sorted(trials, key=_batch)
        if (found := _measured(trial, gauge.name)) is not None
    ]
    fits = [point for outcome, point in points if outcome == "fits"]
    above = [point for outcome, point in points if outcome != "fits" and point.batch > low]
    if not above:
        return _from_below(fits, gauge)
    if not gauge.decides and _has_fallen(fits, gauge):
        return _in_proportion(above[0], fits[-1], gauge)
    if above[0].batch > _NEAR[1] * low:
        return _across([*fits[-1:], above[0]], fits, gauge)
    near = [point for _, point in points if _NEAR[0] * low <= point.batch <= _NEAR[1] * low]
    return _across(near, fits, gauge)


def _has_fallen(fits: Sequence[_Point], gauge: Gauge) -> bool:
    return any(
        _SAVES_FROM * (gauge.limit or 0) < larger.took <= smaller.took
        for smaller, larger in pairwise(fits)
        if larger.batch > smaller.batch
    )


def _in_proportion(above: _Point, low: _Point, gauge: Gauge) -> Forecast:
    """By what was too much alone, since what ran has taken what there was."""
    slope = (above.took - low.before) / above.batch
    at = _reach(above.batch, (gauge.limit or 0) - above.took, slope)
    return Forecast(gauge, slope, at, at, at, both_sides=True, fallen=True)


def _from_below(fits: Sequence[_Point], gauge: Gauge) -> Forecast:
    """By what ran alone, from the last of it."""
    batch, before, took = fits[-1]
    noise = max(NOISE * (took - before), _SMALLEST_NOISE)
    room = (gauge.limit or 0) - took
    if len(fits) == 1:
        # All that the step took beside what was there before, as if it were the batch's.
        slope = max(took - before, _SMALLEST_NOISE) / batch
        reach = _reach(batch, room, slope)
        return Forecast(gauge, slope, reach, reach, math.inf)
    apart = [point for point in fits if point.batch <= 0.9 * batch]
    other = apart[-1] if apart else fits[0]
    run = batch - other.batch
    slope, error = (took - other.took) / run, noise / run
    hidden = took - other.took < _HIDDEN * (took - before)
    fallen = not gauge.decides and _has_fallen(fits, gauge)
    if not gauge.name.startswith("gpu"):
        # Two neighbours can differ by chance alone.
        slope = max(slope, _CHORD * (took - fits[0].took) / (batch - fits[0].batch))
    if slope <= 0:
        slope = _steepest(fits)
    return Forecast(
        gauge,
        slope,
        _reach(batch, room, slope + error),
        _reach(batch, room, slope),
        _reach(batch, room + noise, slope - error),
        hidden=hidden,
        fallen=fallen,
    )


def _across(near: Sequence[_Point], fits: Sequence[_Point], gauge: Gauge) -> Forecast:
    """By what was measured on both sides of the limit: each of them says where the line meets it,
    and they differ by as much as chance does."""
    batch, took = fmean(map(_batch, near)), fmean(point.took for point in near)
    below = [point for point in fits if point.batch <= _APART * batch]
    if near[0].batch <= _APART * near[-1].batch:
        below = [near[0]]
    if below:
        slope = (took - below[-1].took) / (batch - below[-1].batch)
    else:
        slope = (took - fmean(point.before for point in near)) / batch
    if slope <= 0:
        slope = _steepest([*fits, *near])
    if slope <= 0:
        return _from_below(fits, gauge)
    limit = gauge.limit or 0
    meets = [_reach(point.batch, limit - point.took, slope) for point in near]
    noise = max(NOISE * (took - near[-1].before), _SMALLEST_NOISE) / slope
    chance = max(noise, stdev(meets)) / math.sqrt(len(meets))
    at = fmean(meets)
    return Forecast(
        gauge,
        slope,
        at - chance,
        at,
        at + chance,
        both_sides=True,
        further=meets[-1],
        scatter=stdev(meets) / at,
    )


def _steepest(points: Sequence[_Point]) -> float:
    """It fell, and will rise as before."""
    ordered = sorted(points)
    rises = [
        (right.took - left.took) / (right.batch - left.batch)
        for left, right in pairwise(ordered)
        if right.batch > left.batch
    ]
    return max(rises, default=0.0)


def _reach(batch: float, room: float, slope: float) -> float:
    return batch + room / slope if slope > 0 else math.inf
