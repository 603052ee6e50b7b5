"""The mark before a headline. A tick stands before an answer that is fine, and no other."""

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
