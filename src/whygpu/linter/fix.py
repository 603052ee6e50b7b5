"""Applies the edits of findings, only if the result still parses."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.linter.one_file import Analysis, analyse, setup_text
from whygpu.linter.project_files import kind_of
from whygpu.linter.settings import Settings
from whygpu.linter.setup_file import analyse_setup, edits_of
from whygpu.model.cause import Cause
from whygpu.model.finding import Finding
from whygpu.model.program import Edit, Place, Position
from whygpu.readers.code.notebook import Notebook, source_of, syntax_error
from whygpu.readers.code.source import SourceProblem

_MOST_ROUNDS = 6
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")


class Fixed(NamedTuple):
    content: bytes
    findings: tuple[Finding, ...] = ()
    """Those that the content does not have any more."""


class _Fix(NamedTuple):
    finding: Finding
    edits: tuple[Edit, ...]


def fixed(path: str, content: bytes, settings: Settings, causes: Sequence[Cause]) -> Fixed:
    """The file with all possible fixes, repeated until nothing is left to fix."""
    if kind_of(path) is not None:
        return _fixed_setup(path, content, settings, causes)
    done: list[Finding] = []
    for _ in range(_MOST_ROUNDS):
        try:
            analysis = analyse(path, content, settings, causes)
        except SourceProblem:
            break
        fixes = _apart(
            [_Fix(item.finding, item.edits) for item, reason in analysis.found if reason is None]
        )
        changed = _apply(analysis, content, [edit for fix in fixes for edit in fix.edits])
        if changed is None or changed == content:
            break
        content = changed
        done += [fix.finding for fix in fixes]
    return Fixed(content, tuple(done))


def _fixed_setup(path: str, content: bytes, settings: Settings, causes: Sequence[Cause]) -> Fixed:
    text = setup_text(content)
    try:
        raw = content.decode("utf-8")
    except UnicodeDecodeError:
        return Fixed(content)
    if text is None:
        return Fixed(content)
    analysis = analyse_setup(path, text, settings, causes)
    fixes = _apart([_Fix(*pair) for pair in edits_of(path, text, analysis)])
    made = replaced(raw, [edit for fix in fixes for edit in fix.edits])
    return Fixed(made.encode("utf-8"), tuple(fix.finding for fix in fixes))


def _apart(fixes: Sequence[_Fix]) -> list[_Fix]:
    """All edits of a finding or none, without findings whose edits overlap another's."""
    chosen: list[_Fix] = []
    taken: list[Place] = []
    for fix in fixes:
        if not fix.edits or any(_touch(edit.place, place) for edit in fix.edits for place in taken):
            continue
        chosen.append(fix)
        taken += [edit.place for edit in fix.edits]
    return chosen


def _touch(one: Place, other: Place) -> bool:
    return one.start <= other.end and other.start <= one.end


def _apply(analysis: Analysis, content: bytes, edits: list[Edit]) -> bytes | None:
    """None if there is nothing to do, or if the result would not be as intended."""
    if not edits:
        return None
    source = analysis.source
    if source.notebook is not None:
        return _in_notebook(source.notebook, content, edits)
    text = content.decode(source.encoding)
    if text.encode(source.encoding) != content:
        # In some encodings a character can be written in several ways.
        return None
    made = replaced(text, edits)
    return made.encode(source.encoding) if syntax_error(made) is None else None


def replaced(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made. Each line keeps its line ending."""
    lines = _LINES.findall(text)
    for edit in sorted(edits, key=lambda edit: edit.place.start, reverse=True):
        (first, column), (last, end) = edit.place
        head, tail = lines[first - 1], lines[last - 1]
        ending = head[len(head.rstrip("\r\n")) :] or "\n"
        new = head[: column - 1] + edit.text.replace("\n", ending) + tail[end - 1 :]
        lines[first - 1 : last] = [new]
    return "".join(lines)


def _in_notebook(book: Notebook, content: bytes, edits: list[Edit]) -> bytes | None:
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    text = content.decode("utf-8-sig")
    style = _style(book, text)
    if style is None:
        # Its JSON is formatted in a way that writing would not preserve.
        return None
    by_cell: dict[int, list[Edit]] = {}
    for edit in edits:
        cell = book.cell_of(edit.place.start[0])
        shift = cell.first_line - 1
        place = Place(*(_shifted(position, shift, cell.indent) for position in edit.place))
        by_cell.setdefault(cell.place, []).append(edit._replace(place=place))
    data = json.loads(text)
    for index, cell_edits in by_cell.items():
        cell = data["cells"][index]
        source = replaced(source_of(cell), cell_edits)
        listed = isinstance(cell.get("source"), list)
        cell["source"] = source.splitlines(keepends=True) if listed else source
    return mark + style.write(data).encode("utf-8")


def _shifted(position: Position, lines: int, columns: int) -> Position:
    return (position[0] - lines, position[1] + columns)


class _Style(NamedTuple):
    indent: int | None
    ascii_only: bool
    end: str

    def write(self, data: object) -> str:
        return json.dumps(data, indent=self.indent, ensure_ascii=self.ascii_only) + self.end


def _style(book: Notebook, text: str) -> _Style | None:
    """The formatting of the notebook's JSON, if a common style reproduces its text exactly."""
    end = text[len(text.rstrip("\n")) :]
    for indent in (1, 2, 4, None):
        for ascii_only in (False, True):
            style = _Style(indent, ascii_only, end)
            if style.write(book.data) == text:
                return style
    return None
