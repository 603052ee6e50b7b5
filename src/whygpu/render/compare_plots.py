"""Plots of a comparison as SVG: difference by layer, time by lane. No library, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from whygpu.comparer.words import figure, seconds
from whygpu.model.comparison import LaneResult, PairVerdict

WIDTH = 860
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 44
_LAYER_HEIGHT = 300
_BAR = 26
_SMALLEST, _LARGEST = 1e-3, 1e12
"""What is drawn: below a thousandth of what rounding explains nothing is to be seen."""
COLORS = 8
"""How many classes line0 ... there are; further lines begin anew."""


def by_layer(pairs: Sequence[PairVerdict]) -> str:
    """Each pair's difference in each layer, in units of what rounding explains; 1 is the limit."""
    curves = [(f"{pair.a}, {pair.b}", _points(pair)) for pair in pairs]
    curves = [(name, points) for name, points in curves if points]
    if not curves:
        return ""
    names = _layer_names(pairs)
    largest = max(value for _, points in curves for _, value in points)
    plot = _Plot(len(names), -3, max(1, math.ceil(math.log10(largest))))
    parts = [*plot.grid(names), *plot.limit()]
    for number, (name, points) in enumerate(curves):
        parts += plot.curve(points, names, name, number % COLORS)
    return _svg(_LAYER_HEIGHT, "Difference by layer", parts)


def legend(pairs: Sequence[PairVerdict]) -> list[tuple[str, int]]:
    """(name, number of the class) of each curve."""
    drawn = [pair for pair in pairs if _points(pair)]
    return [(f"{pair.a}, {pair.b}", number % COLORS) for number, pair in enumerate(drawn)]


def _points(pair: PairVerdict) -> list[tuple[int, float]]:
    found = []
    for place, layer in enumerate(pair.layers):
        if layer.local is not None:
            beyond = _LARGEST if layer.local.not_finite_in_one else layer.local.units.own
            found.append((place, min(max(beyond, _SMALLEST), _LARGEST)))
    return found


def _layer_names(pairs: Sequence[PairVerdict]) -> list[str]:
    longest = max(pairs, key=lambda pair: len(pair.layers))
    return [layer.layer for layer in longest.layers]


class _Plot:
    def __init__(self, layers: int, low: int, high: int) -> None:
        self._layers, self._low, self._high = max(layers, 2), low, high

    def x(self, place: int) -> float:
        return _LEFT + place * (WIDTH - _LEFT - _RIGHT) / (self._layers - 1)

    def y(self, value: float) -> float:
        power = min(max(math.log10(value), self._low), self._high)
        share = (power - self._low) / (self._high - self._low)
        return _LAYER_HEIGHT - _BOTTOM - share * (_LAYER_HEIGHT - _TOP - _BOTTOM)

    def grid(self, names: Sequence[str]) -> list[str]:
        parts = []
        for power in range(self._low, self._high + 1):
            y = self.y(10.0**power)
            parts.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "grid"))
            parts.append(_text(_LEFT - 8, y + 4, f"1e{power}" if power else "1", "end"))
        middle = (WIDTH + _LEFT - _RIGHT) / 2
        parts.append(_text(_LEFT, _LAYER_HEIGHT - 24, names[0], "start"))
        parts.append(_text(WIDTH - _RIGHT, _LAYER_HEIGHT - 24, names[-1], "end"))
        parts.append(_text(middle, _LAYER_HEIGHT - 8, f"{len(names):,} layers, in order", "middle"))
        return parts

    def limit(self) -> list[str]:
        y = self.y(1.0)
        return [
            _line(_LEFT, y, WIDTH - _RIGHT, y, "limit"),
            _text(WIDTH - _RIGHT, y - 6, "what rounding explains", "end"),
        ]

    def curve(
        self, points: Sequence[tuple[int, float]], names: Sequence[str], pair: str, number: int
    ) -> list[str]:
        places = [(self.x(place), self.y(value)) for place, value in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts = [f'<polyline class="line{number}" points="{path}"/>']
        for (x, y), (place, value) in zip(places, points, strict=True):
            name = names[place] if place < len(names) else ""
            title = escape(f"{name}: {figure(value)} ({pair})")
            radius = 4 if value > 1 else 2
            parts.append(
                f'<circle class="dot{number}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">'
                f"<title>{title}</title></circle>"
            )
        return parts


def by_lane(lanes: Sequence[LaneResult]) -> str:
    """The median time of a call, with the middle half of the calls as a thin line."""
    timed = [(lane.run.lane.name, lane.speed) for lane in lanes if lane.speed is not None]
    if not timed:
        return ""
    longest = max(speed.high_seconds for _, speed in timed) or 1.0
    left, right = 170, 90
    scale = (WIDTH - left - right) / longest
    parts = []
    for number, (name, speed) in enumerate(timed):
        top = _TOP + number * (_BAR + 10)
        middle = top + _BAR / 2
        end = left + speed.median_seconds * scale
        parts.append(_text(left - 8, middle + 4, _short(name), "end"))
        parts.append(
            f'<rect class="bar" x="{left}" y="{top}" width="{max(end - left, 1):.1f}" '
            f'height="{_BAR}"><title>{escape(name)}</title></rect>'
        )
        low, high = left + speed.low_seconds * scale, left + speed.high_seconds * scale
        parts.append(_line(low, middle, high, middle, "spread"))
        shown = seconds(speed.median_seconds)
        parts.append(_text(max(end, high) + 8, middle + 4, shown, "start"))
    return _svg(2 * _TOP + len(timed) * (_BAR + 10), "Time by lane", parts)


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
