"""Numbers and lists formatted for people."""

from __future__ import annotations

from collections.abc import Sequence

PRECISIONS = {"tf32": "TF32"}
"""Names that are written differently from their form in code."""


def counted(count: int, noun: str) -> str:
    """1 file, 2 files, 1,200 files."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """a, b, c and 4 more."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def figure(number: float) -> str:
    """With two significant digits: 0.04, 12, 3.1e-05."""
    if number == 0:
        return "0"
    if 0.001 <= abs(number) < 10_000:
        text = f"{number:.2g}" if abs(number) < 100 else f"{number:,.0f}"
        return text if "e" not in text else f"{number:.0f}"
    return f"{number:.1e}"


def seconds(duration: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if duration >= size:
            return f"{duration / size:.3g} {unit}"
    return f"{duration / 1e-6:.3g} µs"


def times(ratio: float) -> str:
    return f"{figure(ratio)} times"


def share(ratio: float) -> str:
    """0.04 of, 12 times: the text continues with the whole."""
    return f"{figure(ratio)} of" if ratio <= 1 else times(ratio)
