"""Two plots of a comparison: how far apart lanes are in each layer, and how long each takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.model.comparison import LaneResult, LayerDifference, PairVerdict
from whygpu.model.figures import figure, seconds
from whygpu.render import compare_summary as summary
from whygpu.render.html import svg
from whygpu.render.html.markup import Html

_TOP, _RIGHT = 30, 20
_LEFT = 84
_HEIGHT = 250
"""Of the area with the points of the layers."""
_LOWEST = -3
"""Differences below a thousandth of what rounding explains are drawn at the bottom."""
_HIGHEST = 12
_MOST_CURVES = 6
"""More pairs than this are grouped by verdict."""
_MOST_NAMES = 24
"""Up to this number, every layer has room for its name."""
_LONGEST_NAME = 26
_BAR, _ROW = 16, 34
_WIDE_RANGE = 20.0
"""If times differ by a larger factor, the axis is logarithmic."""


class Curve(NamedTuple):
    """One kind of points: a pair of lanes, or several pairs with the same verdict."""

    name: str
    pairs: tuple[PairVerdict, ...]


def curves(pairs: Sequence[PairVerdict]) -> list[Curve]:
    drawn = [pair for pair in pairs if pair.layers]
    if len(drawn) <= _MOST_CURVES:
        return [Curve(f"{pair.a}, {pair.b}", (pair,)) for pair in drawn]
    return [Curve(_name_of(group), (group.pair, *group.others)) for group in summary.alike(drawn)]


def _name_of(group: summary.PairGroup) -> str:
    if not group.others:
        return f"{group.pair.a}, {group.pair.b}"
    return (
        f"{summary.short_title(group.pair)}: {len(group.others) + 1} pairs, the worst of each layer"
    )


def by_layer(pairs: Sequence[PairVerdict]) -> Html | None:
    """Each layer by itself, in units of what rounding explains; None without layers."""
    drawn = curves(pairs)
    if not drawn:
        return None
    field = _Field(pairs)
    parts = [*field.axes(), *field.first_differences(pairs)]
    for number, curve in enumerate(drawn):
        parts += field.points(curve, number, len(drawn))
    return svg.drawing(field.height, "Difference of each layer by itself", field.summary(), parts)


class _Field:
    """The area of the plot: layers on the x axis, multiples of rounding on the y axis."""

    def __init__(self, pairs: Sequence[PairVerdict]) -> None:
        longest = max(pairs, key=lambda pair: len(pair.layers))
        self._names = [layer.layer for layer in longest.layers]
        self._places = {name: place for place, name in enumerate(self._names)}
        locals_ = [
            layer.local for pair in pairs for layer in pair.layers if layer.local is not None
        ]
        self._largest = max((local.units.own for local in locals_), default=0.0)
        self._overflow = any(local.not_finite_in_one for local in locals_)
        power = math.ceil(math.log10(self._largest)) if self._largest > 0 else 0
        self._high = min(max(power, 1), _HIGHEST) + self._overflow
        self._named = len(self._names) <= _MOST_NAMES
        below = min(max(map(len, self._names)), _LONGEST_NAME) * svg.SLANTED_LETTER + 20
        self.height = _TOP + _HEIGHT + (below if self._named else 24) + 22

    def x(self, place: int) -> float:
        return _LEFT + (place + 0.5) * (svg.WIDTH - _LEFT - _RIGHT) / len(self._names)

    def y(self, value: float) -> float:
        power = math.log10(value) if value > 0 else _LOWEST
        share = (min(max(power, _LOWEST), self._high) - _LOWEST) / (self._high - _LOWEST)
        return _TOP + (1 - share) * _HEIGHT

    def axes(self) -> list[Html]:
        bottom, right, limit = _TOP + _HEIGHT, svg.WIDTH - _RIGHT, self.y(1.0)
        parts = [svg.area(_LEFT, _TOP, right - _LEFT, limit - _TOP, "beyond")]
        top = self._high - self._overflow
        for power in svg.powers(_LOWEST, top):
            y = self.y(10.0**power)
            parts.append(svg.line(_LEFT, y, right, y, "grid"))
            least = "≤ " if power == _LOWEST else ""
            parts.append(svg.label(_LEFT - 8, y + 4, least + svg.power_of_ten(power), "end"))
        if self._overflow:
            parts.append(svg.label(_LEFT - 8, _TOP + 4, "not finite", "end"))
        parts.append(svg.line(_LEFT, limit, right, limit, "limit"))
        parts.append(svg.label(right, limit + 14, "below this line: rounding", "end"))
        parts.append(svg.upright(14, _TOP + _HEIGHT / 2, "times what rounding explains"))
        parts += self._names_below(bottom)
        middle = (_LEFT + right) / 2
        text = f"{len(self._names):,} layers, in the order of computation"
        parts.append(svg.label(middle, self.height - 6, text, "middle"))
        return parts

    def _names_below(self, bottom: float) -> list[Html]:
        if self._named:
            return [
                svg.slanted(self.x(place) + 4, bottom + 14, _short(name, self.x(place)))
                for place, name in enumerate(self._names)
            ]
        steps = [int(step) for step in svg.round_steps(len(self._names), 8) if step >= 1]
        return [
            svg.label(self.x(place - 1), bottom + 16, f"{place:,}", "middle")
            for place in dict.fromkeys([1, *steps])
        ]

    def first_differences(self, pairs: Sequence[PairVerdict]) -> list[Html]:
        """Lines at the layers where lanes first differ."""
        first = {pair.first_layer for pair in pairs if pair.verdict == "different"}
        places = sorted(self._places[name] for name in first if name in self._places)
        parts = []
        for place in places:
            x = self.x(place)
            parts.append(svg.line(x, _TOP - 6, x, _TOP + _HEIGHT, "first-difference"))
        if places:
            x = self.x(places[0])
            anchor, room = ("start", svg.WIDTH - x) if x < svg.WIDTH / 2 else ("end", x)
            before = "first differs at "
            letters = int(room / svg.LETTER) - len(before)
            text = before + _shortened(self._names[places[0]], letters)
            parts.append(svg.label(x, _TOP - 12, text, anchor, "strong"))
        return parts

    def points(self, curve: Curve, number: int, among: int) -> list[Html]:
        """Points of several curves are drawn side by side if there is room."""
        slot = (svg.WIDTH - _LEFT - _RIGHT) / len(self._names)
        aside = (number - (among - 1) / 2) * min(9.0, slot / (among + 1))
        worst: dict[int, tuple[float, LayerDifference]] = {}
        for pair in curve.pairs:
            for layer in pair.layers:
                place = self._places.get(layer.layer)
                value = _value(layer)
                if place is not None and (place not in worst or value > worst[place][0]):
                    worst[place] = (value, layer)
        parts = []
        for place, (value, layer) in sorted(worst.items()):
            title = f"{layer.layer} ({layer.kind}): {_in_words(layer)} ({curve.name})"
            x = self.x(place) + aside
            if value < 0:
                parts.append(svg.area(x - 3, _TOP + _HEIGHT - 3, 6, 6, "unmeasured", title))
            else:
                size = 5.0 if value > 1 else 3.0
                parts.append(svg.mark(x, self.y(value), size, number, title))
        return parts

    def summary(self) -> str:
        if self._overflow:
            most = "in some layers one lane is not finite"
        else:
            most = f"the largest is {figure(self._largest)} times what rounding explains"
        return f"Of {len(self._names):,} layers, {most}; up to 1 is rounding."


def _value(layer: LayerDifference) -> float:
    """What was measured; -1 if nothing could be."""
    if layer.local is None:
        return -1.0
    return math.inf if layer.local.not_finite_in_one else layer.local.units.own


def _in_words(layer: LayerDifference) -> str:
    if layer.local is None:
        return f"cannot be judged by itself: {layer.local_unknown or 'not computed again'}"
    if layer.local.not_finite_in_one:
        return f"not finite in {layer.local.not_finite_in_one:,} places of one lane"
    if not layer.local.units.own:
        return "no difference"
    return (
        f"{figure(layer.local.units.own)} times what rounding explains, up to "
        f"{figure(layer.local.max_abs)} apart"
    )


def _short(name: str, room: float) -> str:
    """A name for an axis; the table and the tooltip have the whole name."""
    return _shortened(name, min(_LONGEST_NAME, int(room / svg.SLANTED_LETTER)))


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else "…" + name[len(name) - most + 1 :]


def by_lane(lanes: Sequence[LaneResult]) -> Html | None:
    """The median time of a call with the middle half of the calls, and the first call."""
    timed = [(lane.run.lane.name, lane.speed) for lane in lanes if lane.speed is not None]
    if not timed:
        return None
    known = [(speed.low_seconds, speed.high_seconds) for _, speed in timed]
    firsts = [speed.first_call_seconds for _, speed in timed]
    left = 16 + max(len(name) for name, _ in timed) * svg.LETTER
    scale = _Scale(min(low for low, _ in known), max(*firsts, *(high for _, high in known)), left)
    bottom = 8 + len(timed) * _ROW
    parts = scale.axis(bottom)
    for number, (name, speed) in enumerate(timed):
        top = 8 + number * _ROW + (_ROW - _BAR) / 2
        middle = top + _BAR / 2
        end, high = scale.x(speed.median_seconds), scale.x(speed.high_seconds)
        described = (
            f"{name}: {seconds(speed.median_seconds)} a call, the middle half from "
            f"{seconds(speed.low_seconds)} to {seconds(speed.high_seconds)}; the first call took "
            f"{seconds(speed.first_call_seconds)}"
        )
        parts.append(svg.label(left - 8, middle + 4, name, "end"))
        parts.append(svg.area(left, top, end - left, _BAR, "bar", described))
        parts.append(svg.line(scale.x(speed.low_seconds), middle, high, middle, "spread"))
        first = scale.x(speed.first_call_seconds)
        parts.append(svg.line(first, top - 3, first, top + _BAR + 3, "first"))
        clear = max(end, high)
        beside = clear + 6
        if first > clear and first < beside + 64:
            beside = first + 6
        parts.append(svg.label(beside, middle + 4, seconds(speed.median_seconds), "start", "value"))
    fastest = min(timed, key=lambda item: item[1].median_seconds)
    text = f"{fastest[0]} is fastest with {seconds(fastest[1].median_seconds)} a call."
    return svg.drawing(bottom + 44, "Time of one call by lane", text, parts)


class _Scale:
    """Seconds on the x axis: linear, or logarithmic if they are far apart."""

    def __init__(self, least: float, most: float, left: float) -> None:
        self._left, self._right = left, svg.WIDTH - 80
        self._most = max(most, 1e-9)
        self.log = least > 0 and most / least > _WIDE_RANGE
        self._low = math.floor(math.log10(least)) if self.log else 0
        self._high = math.ceil(math.log10(most)) if self.log else 0

    def x(self, duration: float) -> float:
        if self.log:
            power = math.log10(max(duration, 10.0**self._low))
            share = (power - self._low) / (self._high - self._low)
        else:
            share = duration / self._most
        return self._left + share * (self._right - self._left)

    def axis(self, bottom: float) -> list[Html]:
        if self.log:
            ticks = [10.0**power for power in svg.powers(self._low, self._high)]
        else:
            ticks = svg.round_steps(self._most)
        parts = []
        for tick in ticks:
            x = self.x(tick)
            parts.append(svg.line(x, 4, x, bottom, "grid"))
            parts.append(svg.label(x, bottom + 16, seconds(tick) if tick else "0", "middle"))
        kind = "time of one call, logarithmic" if self.log else "time of one call"
        middle = (self._left + self._right) / 2
        parts.append(svg.label(middle, bottom + 36, kind, "middle"))
        return parts
