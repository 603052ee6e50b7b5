"""A Jupyter notebook as one Python text, with the way back from its lines to its cells."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from whygpu.model.program import Position

_MAGIC = re.compile(r"^\s*([%!?]|[\w.\[\]]+\?{1,2}\s*$|\w+(\s*,\s*\w+)*\s*=\s*[%!])")
_CELL_MAGIC = re.compile(r"^\s*%%\s*(\w+)")
_PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun"})


class NotANotebook(ValueError):
    """The file is no notebook that can be read; the message says why."""


class Cell(NamedTuple):
    index: int
    """Among all cells, in the notebook's own list."""
    number: int
    """Among all cells, counted from 1, as readers are told."""
    first_line: int
    """Its first line in the joined text."""
    lines: tuple[str, ...]
    """As they are written, magics included."""


class Notebook(NamedTuple):
    data: dict[str, Any]
    cells: tuple[Cell, ...]
    text: str
    """The code of all cells; what is not Python is left blank, or is `pass`."""
    magics: str
    """The lines that are left out of the text."""

    def where(self, line: int) -> tuple[int, int]:
        """The cell's number and the line within it, of a line of the joined text."""
        found = self.cells[0]
        for cell in self.cells:
            if cell.first_line > line:
                break
            found = cell
        return found.number, line - found.first_line + 1


def parse(content: str) -> Notebook:
    try:
        data = json.loads(content)
    except ValueError as error:
        raise NotANotebook(f"it is no JSON: {error}") from error
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook('it has no list "cells" (notebooks before format 4 are not read)')
    found: list[Cell] = []
    text: list[str] = []
    magics: list[str] = []
    for index, cell in enumerate(cells):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        lines = _source(cell).split("\n")
        found.append(Cell(index, index + 1, len(text) + 1, tuple(lines)))
        text += _python(lines, magics)
    return Notebook(data, tuple(found), "\n".join(text) + "\n", "\n".join(magics))


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _python(lines: list[str], magics: list[str]) -> list[str]:
    """The same number of lines, with shell commands and magics taken out."""
    first = next((line for line in lines if line.strip()), "")
    cell_magic = _CELL_MAGIC.match(first)
    if cell_magic is not None and cell_magic.group(1) not in _PYTHON_CELLS:
        magics += lines
        return [""] * len(lines)
    result: list[str] = []
    continued = inside = False
    for line in lines:
        if continued or (not inside and _MAGIC.match(line)):
            magics.append(line)
            # `pass` keeps a block whole that has nothing else in it.
            indent = line[: len(line) - len(line.lstrip())]
            result.append("" if continued else f"{indent}pass")
            continued = line.rstrip().endswith("\\")
        else:
            result.append(line)
            # A line such as `x %` may go on; magics stand at the start of a statement only.
            inside = line.rstrip().endswith(("\\", "(", ",", "["))
    return result


def position(book: Notebook, place: Position) -> tuple[int, Position]:
    cell, line = book.where(place[0])
    return cell, (line, place[1])
