"""A page of text for a terminal: wrapped paragraphs, labels, tables and colours.

whygpu lays text out itself: importing a library for it takes longer than most answers take.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

BOLD, GREEN, YELLOW, RED, CYAN, DIM = "1", "32", "33", "31", "1;36", "2"
_NARROWEST = 20
"""Text is not wrapped to less than this, even where it then exceeds the page."""
_WORD = re.compile(r" *[^ ]+")


class Page:
    """Lines of text, wrapped under their labels, in colour or not. Width 0: nothing is wrapped."""

    def __init__(self, width: int, color: bool) -> None:
        self.width = width
        self._color = color
        self._lines: list[str] = []

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._color and style and text else text

    def line(self, text: str = "", style: str = "") -> None:
        """One line as it is: a command has to survive copy and paste."""
        self._lines.append(self.styled(text, style))

    def hanging(self, label: str, text: str, indent: int, style: str = "", mark: str = "") -> None:
        """A label with the text beside it; wrapped lines start under the text."""
        first, *rest = wrapped(text, max(self.width - indent, _NARROWEST))
        if label and cells(label.rstrip()) >= indent:
            # The label leaves no room beside it.
            self.line(label, mark)
            label = ""
        shown = self.styled(label, mark) + " " * (indent - cells(label))
        self._lines.append(shown + self.styled(first, style))
        self._lines += [" " * indent + self.styled(line, style) for line in rest]

    def paragraph(self, text: str, style: str = "") -> None:
        """Wrapped from the margin on. A line break in the text cannot start a line of ours."""
        self.hanging("", " ".join(text.splitlines()), 0, style)

    def item(self, text: str, style: str = "") -> None:
        """One of a list."""
        self.hanging("   -", text, 5, style)

    def section(self, title: str, style: str = CYAN) -> None:
        self.line()
        self.line(f"{title}:", style)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines) + "\n"


def wrapped(text: str, room: int) -> list[str]:
    """The text in lines of at most `room` columns; it keeps its own line breaks."""
    return [line for part in text.splitlines() for line in _wrapped_line(part, room)] or [""]


def _wrapped_line(text: str, room: int) -> Iterator[str]:
    line = ""
    for word in _WORD.findall(text.expandtabs()):
        if cells(line + word) <= room:
            line += word
            continue
        if line:
            yield line
            word = word.lstrip()
        *full, line = _pieces(word, room)
        yield from full
    yield line


def _pieces(word: str, room: int) -> Iterator[str]:
    """A word that is longer than a line, cut where the line ends."""
    while cells(word) > room:
        end = room
        while end > 1 and cells(word[:end]) > room:
            end -= 1
        yield word[:end]
        word = word[end:]
    yield word


def cells(text: str) -> int:
    """How many columns a terminal needs for the text: two for a wide character such as 日."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(sign) in ("Mn", "Me") else 2 if east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cells, column)) for column in zip(*rows, strict=True)]


def sentence(text: str) -> str:
    """The text with a capital letter at its start."""
    return text[:1].upper() + text[1:]
