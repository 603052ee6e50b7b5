"""Undoes line wrapping, and prefixes that are the same on many lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

Numbered = tuple[int, str]

_NARROWEST, _WIDEST = 60, 250
_ENOUGH_FULL_LINES = 4
_HEADER = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\)")
_DIGITS = re.compile(r"\d+")
_LONGEST_PREFIX = 120
_LONGEST_TRACEBACK = 300


def joined(lines: Sequence[Numbered]) -> list[Numbered]:
    """Undo the wrapping of a console, which makes nearly every long line equally wide."""
    width = _console_width([text for _, text in lines])
    if width is None:
        return list(lines)
    whole: list[Numbered] = []
    full = False
    for number, text in lines:
        if full and text:
            first, before = whole[-1]
            whole[-1] = (first, before + text)
        else:
            whole.append((number, text))
        full = len(text) == width
    return whole


def _console_width(texts: Sequence[str]) -> int | None:
    width = max(map(len, texts), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    full = [place for place, text in enumerate(texts) if len(text) == width]
    nearly = sum(1 for text in texts if len(text) > width * 0.9)
    if len(full) < _ENOUGH_FULL_LINES or len(full) * 3 < nearly * 2:
        return None
    cut = sum(1 for place in full if _goes_on(texts[place], texts[place + 1 : place + 2]))
    return width if cut * 2 > len(full) else None


def _goes_on(text: str, following: Sequence[str]) -> bool:
    """Whether the next line continues this one. Rows of a table are as wide, but do not."""
    if not following or not following[0] or text[-1] in "|+-=_#*]" or following[0][0].isupper():
        return False
    return _DIGITS.sub("", text[:12]) != _DIGITS.sub("", following[0][:12])


def unprefixed(lines: Sequence[Numbered]) -> list[Numbered]:
    """Tracebacks without the prefix that a logger added to each line, whatever it is.

    The first line of a traceback is always the same, so the text before it is the prefix. The next
    lines have the same prefix, except for its numbers.
    """
    shortened = list(lines)
    for index, (_, text) in enumerate(lines):
        header = _HEADER.search(text, 0, _LONGEST_PREFIX + 40)
        prefix = text[: header.start()] if header else ""
        if not prefix.strip() or prefix.endswith("  "):
            continue
        shape = _DIGITS.sub("0", prefix)
        pattern = re.compile(re.escape(shape).replace("0", r"\d+"))
        for place in range(index, min(index + _LONGEST_TRACEBACK, len(lines))):
            number, line = lines[place]
            match = pattern.match(line)
            if match is None:
                break
            shortened[place] = (number, line[match.end() :])
    return shortened
