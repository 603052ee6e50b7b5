"""A table that fits a given width without cutting any cell.

Names are wrapped over several lines; if that is not enough, the table becomes a list. Columns that
are empty in every row are left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence

from whygpu.render.text_page import wrapped

INDENT = 3
NOTHING = "-"
_GAP = 2
_SHORTEST = 12
"""The minimum width of a wrapped name."""
_MOST_LINES = 3
"""With more lines than this for a name, a list is easier to read."""
_NO_BREAK = "\xa0"
_WORD = re.compile(r"[^\s,_./:@+]*[\s,_./:@+]*")


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, names: Collection[str] = ()
) -> list[list[str]]:
    """The lines of the head, then those of each row. Columns in `names` may be wrapped."""
    columns = list(zip(*without_empty_columns(head, rows), strict=True))
    sizes = _sizes(columns, width, names)
    if sizes is None:
        return _list(columns, width)
    cells = [
        [_folded(cell, size) for cell in column]
        for column, size in zip(columns, sizes, strict=True)
    ]
    if any(len(lines) > _MOST_LINES for column in cells for lines in column):
        return _list(columns, width)
    return [_row(row, sizes) for row in zip(*cells, strict=True)]


def fits(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the table fits without wrapped names."""
    return (
        _needed(
            [_longest(column) for column in zip(*without_empty_columns(head, rows), strict=True)]
        )
        <= width
    )


def without_empty_columns(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Head and rows, without the columns that are empty in every row."""
    kept = [place for place in range(len(head)) if any(row[place] != NOTHING for row in rows)]
    return [tuple(row[place] for place in kept) for row in (head, *rows)]


def _longest(column: Sequence[str]) -> int:
    return max(map(len, column))


def _needed(sizes: Sequence[int]) -> int:
    return INDENT + sum(sizes) + _GAP * (len(sizes) - 1)


def _sizes(
    columns: Sequence[Sequence[str]], width: int, names: Collection[str]
) -> list[int] | None:
    """The width of each column; None if they do not fit side by side."""
    sizes = [_longest(column) for column in columns]
    least = [
        min(size, _SHORTEST) if column[0] in names else size
        for size, column in zip(sizes, columns, strict=True)
    ]
    if _needed(least) > width:
        return None
    while _needed(sizes) > width:
        room = [size if size > smallest else 0 for size, smallest in zip(sizes, least, strict=True)]
        sizes[room.index(max(room))] -= 1
    return sizes


def _folded(cell: str, size: int) -> list[str]:
    """Over several lines, broken after the characters that join the parts of a name."""
    lines = [""]
    for word in _WORD.findall(cell):
        if len((lines[-1] + word).rstrip()) <= size:
            lines[-1] += word
            continue
        lines += textwrap.wrap(word, size, break_on_hyphens=False, drop_whitespace=False)
    return [line.rstrip() for line in lines if line.strip()] or [""]


def _row(cells: Sequence[Sequence[str]], sizes: Sequence[int]) -> list[str]:
    lines = []
    for number in range(max(map(len, cells))):
        texts = [cell[number] if number < len(cell) else "" for cell in cells]
        padded = [text.ljust(size) for text, size in zip(texts, sizes, strict=True)]
        lines.append(" " * INDENT + (" " * _GAP).join(padded).rstrip())
    return lines


def _list(columns: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Each row by itself: its first cell, and below it the others by name. The head is empty."""
    heads = [column[0] for column in columns]
    result: list[list[str]] = [[]]
    for first, *others in list(zip(*columns, strict=True))[1:]:
        parts = [
            f"{name} {cell}".replace(" ", _NO_BREAK)
            for name, cell in zip(heads[1:], others, strict=True)
            if cell != NOTHING
        ]
        below = _wrapped("; ".join(parts), width, " " * (INDENT + _GAP))
        # A number means nothing without the title of its column.
        title = f"{heads[0]} {first}" if first[:1].isdecimal() else first
        result.append([*_wrapped(title, width, " " * INDENT), *below])
    return result


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    lines = wrapped(text, width - len(indent))
    return [indent + line.replace(_NO_BREAK, " ") for line in lines]
