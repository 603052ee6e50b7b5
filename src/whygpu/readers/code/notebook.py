"""Reads a Jupyter notebook as one Python text, and maps its lines back to cells."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from typing import Any, NamedTuple

from whygpu.model.program import Position
from whygpu.readers import bounded_json
from whygpu.readers.code.tokens import check_tokens

_MAGIC = re.compile(
    r"\s{0,80}(?:[%!?]|[\w.]{1,80}(?:\[[^\]]{0,40}\])?\?{1,2}\s{0,9}$|\w[\w, ]{0,79}=\s{0,9}[%!]"
    r"|(?:ls|cd|pip3?|rm|mkdir|cp|mv|cat|pwd|conda)(?:\s{1,9}[-~./\w$\"\']|\s{0,9}$))"
)
_CELL_MAGIC = re.compile(r"\s{0,80}%%\s{0,9}(\w{1,40})")
_PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun"})
_STRINGS = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|#.*")


class NotANotebook(ValueError):
    """The file is not a readable notebook; the message says why."""


class Cell(NamedTuple):
    place: int
    """Its index in the notebook's own list of cells, counted from 0."""
    first_line: int
    """Its first line in the joined text."""
    lines: tuple[str, ...]
    """The original lines, including magics."""
    indent: int
    """The common indentation of all lines, which IPython ignores."""
    run_number: int | None = None
    """The number that Jupyter gave to its last run; None if it was not run, or is not known."""

    @property
    def number(self) -> int:
        """The number in reports, counted from 1."""
        return self.place + 1


class Notebook(NamedTuple):
    data: dict[str, Any]
    cells: tuple[Cell, ...]
    text: str
    """The code of all cells; what is not Python is empty or `pass`."""
    magics: str
    """The lines that are left out of the text."""
    broken: tuple[tuple[Cell, SyntaxError], ...] = ()
    """Cells that are left out of the text, because they are not Python."""
    tree: ast.Module | None = None
    """The syntax tree of the text, if it was needed to find out that no cell is broken."""

    def cell_of(self, line: int) -> Cell:
        """The cell that a line of the joined text is in."""
        found = self.cells[0]
        for cell in self.cells:
            if cell.first_line > line:
                break
            found = cell
        return found

    def position(self, place: Position) -> tuple[int, Position]:
        """The cell's number, and the line and column within it."""
        cell = self.cell_of(place[0])
        return cell.number, (place[0] - cell.first_line + 1, place[1] + cell.indent)

    def run_number(self, line: int) -> int | None:
        """When the cell of a line was last run, as a number that grows with each run."""
        return self.cell_of(line).run_number

    def line_name(self, line: int) -> str:
        """A line of the joined text, as a reader of the notebook finds it."""
        cell, (line_of_cell, _) = self.position((line, 1))
        return f"line {line_of_cell} of cell {cell}"


def parse(content: bytes) -> Notebook:
    try:
        data = bounded_json.loads(content)
    except ValueError as error:
        raise NotANotebook(str(error)) from error
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook('it has no list "cells" (formats before 4 are not read)')
    found: list[Cell] = []
    text: list[str] = []
    magics: list[str] = []
    sources = {
        place: source_of(cell)
        for place, cell in enumerate(cells)
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and _is_python(data)
    }
    check_tokens(*sources.values())
    for place, source in sources.items():
        lines = source.split("\n")
        number = cells[place].get("execution_count")
        run_number = number if type(number) is int else None
        made = Cell(place, len(text) + 1, tuple(lines), _indent(lines), run_number)
        found.append(made)
        text += _python([line[made.indent :] for line in lines], magics)
    whole, magic_text = "\n".join(text) + "\n", "\n".join(magics)
    tree = _parsed(whole)
    if isinstance(tree, ast.Module) and _is_whole_in_cells(tree, found):
        return Notebook(data, tuple(found), whole, magic_text, tree=tree)
    broken: list[tuple[Cell, SyntaxError]] = []
    for cell in found:
        start, end = cell.first_line - 1, cell.first_line - 1 + len(cell.lines)
        wrong = _parsed("\n".join(text[start:end]))
        if isinstance(wrong, SyntaxError):
            broken.append((cell, wrong))
            text[start:end] = [""] * len(cell.lines)
    return Notebook(data, tuple(found), "\n".join(text) + "\n", magic_text, tuple(broken))


def _is_whole_in_cells(tree: ast.Module, cells: list[Cell]) -> bool:
    """Whether no statement begins in one cell and ends in another: each cell parses alone."""
    starts = [cell.first_line for cell in cells]
    for statement in tree.body:
        first = min(
            (node.lineno for node in getattr(statement, "decorator_list", ())),
            default=statement.lineno,
        )
        if bisect_right(starts, first) != bisect_right(starts, statement.end_lineno or first):
            return False
    return True


def _is_python(data: dict[str, Any]) -> bool:
    """Whether its cells are Python, as far as its metadata say. Notebooks of R have no findings."""
    metadata = data.get("metadata")
    entries = metadata if isinstance(metadata, dict) else {}
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        entry = entries.get(name)
        language = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(language, str) and language:
            return "python" in language.lower()
    return True


def source_of(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return text.replace("\r\n", "\n")


def _parsed(text: str) -> ast.Module | SyntaxError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        # The last two mean that it is nested too deeply.
        return SyntaxError(str(error) or "it is nested too deeply")


def syntax_error(text: str) -> SyntaxError | None:
    parsed = _parsed(text)
    return parsed if isinstance(parsed, SyntaxError) else None


def _indent(lines: list[str]) -> int:
    first = next((line for line in lines if line.strip()), "")
    indent = len(first) - len(first.lstrip(" "))
    blank = " " * indent
    return indent if all(line.startswith(blank) or not line.strip() for line in lines) else 0


def _python(lines: list[str], magics: list[str]) -> list[str]:
    """The same number of lines, without shell commands and magics."""
    first = next((i for i in lines if i.strip() and not i.lstrip().startswith("#")), "")
    cell_magic = _CELL_MAGIC.match(first)
    if cell_magic is not None and cell_magic.group(1) not in _PYTHON_CELLS:
        magics += lines
        return [""] * len(lines)
    if not any(_MAGIC.match(line) for line in lines):
        return lines
    if cell_magic is None and syntax_error("\n".join(lines)) is None:
        return lines
    result: list[str] = []
    depth = 0
    continued = False
    for line in lines:
        if continued or (depth <= 0 and _MAGIC.match(line)):
            magics.append(line)
            # `pass` keeps a block valid that contains nothing else.
            indent = line[: len(line) - len(line.lstrip())]
            result.append("" if continued else f"{indent}pass")
            continued = line.rstrip().endswith("\\")
        else:
            result.append(line)
            bare = _STRINGS.sub("", line)
            depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
    return result
