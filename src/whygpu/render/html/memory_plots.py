"""Plots of memory: over time, and by batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from whygpu.model.batch import BatchResult
from whygpu.model.memory_use import Curve
from whygpu.model.units import size_text
from whygpu.render.html import svg
from whygpu.render.html.markup import Html, figcaption, figure, li, ul

_TOP, _LEFT, _RIGHT, _BOTTOM = 16, 84, 20, 44
_HEIGHT = 220
"""Of the area with the curves."""
_FEW_POINTS = 20
_FEWEST_POINTS = 3
"""Of a program that ended at once, there is no course of time to see."""


class Line(NamedTuple):
    """One curve: its name, and points of the x axis and bytes."""

    name: str
    points: tuple[tuple[float, float], ...]


class Limit(NamedTuple):
    name: str
    bytes: int


def over_time(curves: Sequence[Curve], limit: Limit | None) -> Html | None:
    """The most memory that was in use at each time, for each source of figures."""
    drawn = [
        Line(_name(curve), tuple((point.seconds, float(point.high)) for point in curve.points))
        for curve in curves
        if len(curve.points) >= _FEWEST_POINTS
    ]
    return _plot("Memory in use over time", "seconds", drawn, limit)


def _name(curve: Curve) -> str:
    place = curve.device
    if place == "host":
        place = "main memory of all its processes, without the files that they share"
    source = "" if curve.of == "kernel" else f", by {curve.of}"
    return f"{place}{source}"


def by_batch(result: BatchResult) -> Html | None:
    """The memory that the trials took, below the limit that they ran into."""
    if result.limit is None:
        return None
    held = sorted(
        (trial.batch, gauge.peak)
        for trial in result.trials
        if trial.outcome == "fits" and (gauge := trial.gauge(result.limit.name)) is not None
    )
    if len(held) < 2:
        return None
    line = Line("trials that fitted", tuple((float(batch), float(peak)) for batch, peak in held))
    limit = None if result.limit.limit is None else Limit("the limit", result.limit.limit)
    return _plot("Memory by batch size", "batch size", [line], limit)


def _plot(title: str, axis: str, drawn: Sequence[Line], limit: Limit | None) -> Html | None:
    if not drawn:
        return None
    most_x = max(x for line in drawn for x, _ in line.points) or 1.0
    most_y = max(y for line in drawn for _, y in line.points)
    peak = most_y
    # A limit that is far away would press the curve flat; then it is named only.
    is_near = limit is not None and limit.bytes <= 4 * most_y
    if limit is not None and is_near:
        most_y = max(most_y, float(limit.bytes))
    most_y = max(most_y * 1.05, 1.0)
    right = svg.WIDTH - _RIGHT

    def x_of(x: float) -> float:
        return _LEFT + x / most_x * (right - _LEFT)

    def y_of(y: float) -> float:
        return _TOP + (1 - y / most_y) * _HEIGHT

    parts: list[Html] = []
    for tick in _byte_steps(most_y):
        amount = size_text(int(tick)) if tick else "0"
        parts.append(svg.line(_LEFT, y_of(tick), right, y_of(tick), "grid"))
        parts.append(svg.label(_LEFT - 8, y_of(tick) + 4, amount, "end"))
    for tick in svg.round_steps(most_x):
        parts.append(svg.label(x_of(tick), _TOP + _HEIGHT + 16, f"{tick:,.6g}", "middle"))
    parts.append(svg.label((_LEFT + right) / 2, _TOP + _HEIGHT + 36, axis, "middle"))
    for number, line in enumerate(drawn):
        places = [(x_of(x), y_of(y)) for x, y in line.points]
        parts.append(svg.polyline(places, f"curve curve{number % svg.COLORS}"))
        # Measurements that are far apart are marked, and the last one always: a line with one
        # point is invisible.
        first = 0 if len(places) <= _FEW_POINTS else -1
        for (x, y), (_, held) in zip(places[first:], line.points[first:], strict=True):
            parts.append(svg.mark(x, y, 3.0, number, f"{line.name}: {size_text(int(held))}"))
    if limit is not None and is_near:
        parts.append(svg.line(_LEFT, y_of(limit.bytes), right, y_of(limit.bytes), "limit"))
    summary = f"The most was {size_text(int(peak))}."
    if limit is not None:
        summary += f" {limit.name[:1].upper()}{limit.name[1:]} is {size_text(limit.bytes)}."
    legend = [li(svg.key(number), line.name) for number, line in enumerate(drawn)]
    return figure(
        svg.drawing(_TOP + _HEIGHT + _BOTTOM, title, summary, parts),
        figcaption(summary, ul(legend, kind="legend")),
    )


def _byte_steps(most: float) -> list[float]:
    """0 and round numbers of MiB or GiB."""
    unit = 1.0
    while most / unit >= 1024:
        unit *= 1024
    return [step * unit for step in svg.round_steps(most / unit)]
