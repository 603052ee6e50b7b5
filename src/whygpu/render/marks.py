"""The mark before a headline. Only an answer that is fine has a tick."""

from __future__ import annotations

from whygpu.model.standing import Standing

MARKS: dict[Standing, str] = {
    "fine": "✓",
    "answered": "·",
    "attention": "!",
    "wrong": "✗",
    "unknown": "?",
}
PLAIN_MARKS: dict[Standing, str] = {
    "fine": "+",
    "answered": "-",
    "attention": "!",
    "wrong": "x",
    "unknown": "?",
}
"""For a terminal that cannot show the others."""
