"""Parts of a drawing as SVG text: lines, labels, marks, logarithmic axes. No library, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH = 860
LETTER = 6.8
"""The average width of a letter of a label, rounded up."""
SLANTED_LETTER = 5.4
"""How far a letter of a slanted label extends to the left, and at most downwards."""
COLORS = 8
"""The number of classes mark0, mark1, ...; further curves reuse them."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SHAPES = ("circle", "square", "triangle", "diamond")


def drawing(height: float, title: str, summary: str, parts: Sequence[str]) -> str:
    """An image with a name and a summary for screen readers."""
    return (
        f'<div class="wide" tabindex="0"><svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(f"{title}. {summary}")}">{"".join(parts)}</svg></div>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def area(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" '
        f'height="{max(height, 0):.1f}">{inner}</rect>'
    )


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def slanted(x: float, y: float, text: str) -> str:
    """A slanted label that ends at its place."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end" '
        f'transform="rotate(-40 {x:.1f} {y:.1f})">{escape(text)}</text>'
    )


def upright(x: float, y: float, text: str) -> str:
    """The name of an axis, from bottom to top."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 {x:.1f} {y:.1f})">{escape(text)}</text>'
    )


def mark(x: float, y: float, size: float, number: int, title: str) -> str:
    """A point. Its shape says as much as its colour."""
    points: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "triangle": [(0, -1.2), (1.2, 1), (-1.2, 1)],
        "diamond": [(0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)],
    }
    kind = f'class="mark{number % COLORS}"'
    inner = f"<title>{escape(title)}</title>" if title else ""
    shape = _SHAPES[number % len(_SHAPES)]
    if shape == "circle":
        return f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}">{inner}</circle>'
    places = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in points[shape])
    return f'<polygon {kind} points="{places}">{inner}</polygon>'


def power_of_ten(power: int) -> str:
    """As people write it: 0.01, 1, 100, 10⁵."""
    if -3 <= power <= 3:
        return f"{10.0**power:,.10g}"
    return f"10{str(power).translate(_SUPERSCRIPTS)}"


def powers(low: int, high: int, most: int = 8) -> list[int]:
    """Whole powers from low to high, with 0 if it is among them, and not too many."""
    step = max(1, math.ceil((high - low) / most))
    return [power for power in range(low, high + 1) if power % step == 0]


def round_steps(most: float, steps: int = 5) -> list[float]:
    """0 and round numbers, up to `most`."""
    rough = most / steps
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(base * times for times in (1, 2, 5, 10) if base * times >= rough)
    return [number * step for number in range(math.floor(most / step * 1.0001) + 1)]
