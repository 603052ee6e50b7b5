"""Parts of a drawing as SVG: lines, labels, marks, logarithmic axes. No library, no script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from whygpu.render.html.markup import Child, Html, div, element

WIDTH = 860
LETTER = 6.8
"""The average width of a letter of a label, rounded up."""
SLANTED_LETTER = 5.4
"""How far a letter of a slanted label extends to the left, and at most downwards."""
COLORS = 8
"""The number of classes mark0, mark1, ...; further curves reuse them."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST_POWERS = 8
_SHAPES = ("circle", "square", "triangle", "diamond")


def drawing(height: float, title: str, summary: str, parts: Sequence[Child]) -> Html:
    """An image with a name and a summary for screen readers. Narrow pages scroll it."""
    image = element(
        "svg",
        parts,
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        role="img",
        aria_label=f"{title}. {summary}",
    )
    return div(image, kind="wide", tabindex=0, role="region", aria_label=title)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", kind=kind, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2))


def polyline(points: Iterable[tuple[float, float]], kind: str) -> Html:
    return element("polyline", kind=kind, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))


def area(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> Html:
    return element(
        "rect",
        _title(title),
        kind=kind,
        x=float(x),
        y=float(y),
        width=float(max(width, 1)),
        height=float(max(height, 0)),
    )


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Html:
    return element("text", text, kind=kind, x=float(x), y=float(y), text_anchor=anchor)


def slanted(x: float, y: float, text: str) -> Html:
    """A slanted label that ends at its place."""
    turn = f"rotate(-40 {x:.1f} {y:.1f})"
    return element("text", text, x=float(x), y=float(y), text_anchor="end", transform=turn)


def upright(x: float, y: float, text: str) -> Html:
    """The name of an axis, from bottom to top."""
    turn = f"rotate(-90 {x:.1f} {y:.1f})"
    return element("text", text, x=float(x), y=float(y), text_anchor="middle", transform=turn)


def mark(x: float, y: float, size: float, number: int, title: str) -> Html:
    """A point. Its shape says as much as its colour."""
    points: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
        "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
    }
    kind = f"mark{number % COLORS}"
    shape = _SHAPES[number % len(_SHAPES)]
    if shape == "circle":
        return element("circle", _title(title), kind=kind, cx=float(x), cy=float(y), r=float(size))
    places = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in points[shape])
    return element("polygon", _title(title), kind=kind, points=places)


def key(number: int) -> Html:
    """The mark of a curve beside its name in a legend."""
    return element(
        "svg", mark(7, 7, 4.5, number, ""), kind="key", viewBox="0 0 14 14", aria_hidden="true"
    )


def bar(parts: Sequence[tuple[float, str]]) -> Html:
    """Shares of a whole, each with its class, as wide as the place that it is put into.

    It repeats numbers that are beside it as text, so screen readers skip it.
    """
    pieces, start = [area(0, 0, 100, 10, "bar-rest")], 0.0
    for share, kind in parts:
        width = 100 * min(max(share, 0.0), 1.0)
        pieces.append(area(start, 0, width, 10, kind))
        start += width
    return element(
        "svg",
        pieces,
        kind="share",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _title(text: str) -> Html | None:
    return element("title", text) if text else None


def power_of_ten(power: int) -> str:
    """As people write it: 0.01, 1, 100, 10⁵."""
    if -3 <= power <= 3:
        return f"{10.0**power:,.10g}"
    return f"10{str(power).translate(_SUPERSCRIPTS)}"


def powers(low: int, high: int) -> list[int]:
    """Whole powers from low to high, with 0 if it is among them, and not too many."""
    step = max(1, math.ceil((high - low) / _MOST_POWERS))
    return [power for power in range(low, high + 1) if power % step == 0]


def round_steps(most: float, steps: int = 5) -> list[float]:
    """0 and round numbers, up to `most`."""
    rough = most / steps
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(base * times for times in (1, 2, 5, 10) if base * times >= rough)
    return [number * step for number in range(math.floor(most / step * 1.0001) + 1)]
