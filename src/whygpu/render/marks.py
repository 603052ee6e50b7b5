"""The headline of a page, with the mark before it. Only an answer that is fine has a tick."""

from __future__ import annotations

from collections.abc import Mapping

from whygpu.model.standing import Standing
from whygpu.render.text_page import BOLD, GREEN, RED, YELLOW, Page

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
COLOURS: dict[Standing, str] = {
    "fine": GREEN,
    "answered": "",
    "attention": YELLOW,
    "wrong": RED,
    "unknown": YELLOW,
}


def headline(page: Page, standing: Standing, text: str, marks: Mapping[Standing, str]) -> None:
    page.hanging(marks[standing], text, 2, ";".join(filter(None, (BOLD, COLOURS[standing]))))
