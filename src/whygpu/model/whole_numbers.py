"""Whole numbers in text that somebody else wrote."""

from __future__ import annotations

MOST_DIGITS = 18
"""Nothing that is counted has more. Python refuses to convert thousands of digits."""


def whole_number(text: str) -> int | None:
    """The value of "42"; None for anything else, also for a number with too many digits."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
