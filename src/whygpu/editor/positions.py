"""Converts places in a text to those of the protocol, which counts from 0 and in code units."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from lsprotocol import types
from pygls.workspace import PositionCodec

from whygpu.model.program import Edit, Place, Position

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")
"""A line as the protocol and Python count it. str.splitlines() splits at more characters."""


class Text:
    """The text of a document, for one client."""

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self._lines: list[str] = _LINE.findall(text)
        self._codec = codec

    def range(self, place: Place) -> types.Range:
        return types.Range(self._position(place.start), self._position(place.end))

    def first_line(self, number: int = 1) -> types.Range:
        """The whole of one line."""
        length = len(self._line(number).rstrip("\r\n"))
        return self.range(Place((number, 1), (number, length + 1)))

    def _position(self, position: Position) -> types.Position:
        line, column = position
        before = self._line(line)[: column - 1]
        return types.Position(line - 1, self._codec.client_num_units(before))

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 1 <= number <= len(self._lines) else ""

    def edit(self, edit: Edit) -> types.TextEdit:
        first = self._line(edit.place.start[0])
        ending = first[len(first.rstrip("\r\n")) :] or "\n"
        return types.TextEdit(self.range(edit.place), edit.text.replace("\n", ending))

    def edits_to(self, other: str) -> Iterator[types.TextEdit]:
        """What turns it into the other text, by whole lines: the rest keeps its marks."""
        theirs: Sequence[str] = _LINE.findall(other)
        matcher = difflib.SequenceMatcher(None, self._lines, theirs, autojunk=False)
        for kind, start, end, other_start, other_end in matcher.get_opcodes():
            if kind != "equal":
                place = types.Range(types.Position(start, 0), types.Position(end, 0))
                yield types.TextEdit(place, "".join(theirs[other_start:other_end]))

    def word_at(self, position: types.Position) -> str:
        """The letters and digits around a position."""
        line = self._line(position.line + 1)
        for match in re.finditer(r"\w+", line):
            start, end = (self._codec.client_num_units(line[:at]) for at in match.span())
            if start <= position.character <= end:
                return match[0]
        return ""


def contains(outer: types.Range, position: types.Position) -> bool:
    return _key(outer.start) <= _key(position) <= _key(outer.end)


def share_a_line(one: types.Range, other: types.Range) -> bool:
    return one.start.line <= other.end.line and other.start.line <= one.end.line


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character
