"""Leaves out what only looks like messages: source code that pytest prints around an error,
programs that a page or a report in Markdown shows, and earlier answers of whygpu."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

_TIME = r"(?:\d{4}-\d\d-\d\dT[\d:.]{8,18}Z )?"
_ERROR = re.compile(_TIME + r"E {3,16}\S")
_STATEMENT = re.compile(_TIME + r"> {3}")
_SOURCE = re.compile(_TIME + r"(?: {4}|\s{0,80}$)")
_ENOUGH = 120
"""The start of a line, in characters, shows what it is."""
_MOST_LINES = 300
"""The longest listing of a function that is looked at."""
_LONGEST_PROGRAM = 1 << 16
"""In bytes. A longer text between fences is taken for output."""

_FENCE = re.compile(r"[ \t]{0,8}```[ \t]{0,4}(?:python|python3|py)[ \t\r]{0,8}$", re.IGNORECASE)
_FENCE_END = re.compile(r"[ \t]{0,8}```[ \t\r]{0,8}$")

_WITH_VALUE = re.compile(
    rb"(?:is_(?:gpu_)?available|is_built|device_count|_devices|default_backend)[^#\n]{0,80}\)"
    rb"\s{0,8}#[^#\n]{0,16}?(?:True|False|\[|\d)"
)
"""A person wrote beside the statement what it printed: print(f())  # []"""

Raw = tuple[int, bytes]


def without_programs(lines: Sequence[Raw]) -> list[Raw]:
    """The lines, without programs between fences of Markdown that are marked as Python.

    People put tracebacks between such fences too. Those are no Python, and stay.
    """
    dropped: set[int] = set()
    begin: int | None = None
    for place, (_, raw) in enumerate(lines):
        if b"```" not in raw:
            continue
        start = raw[:_ENOUGH].decode("latin-1")
        if begin is None:
            begin = place + 1 if _FENCE.match(start) else None
        elif _FENCE_END.match(start):
            if _is_program(b"\n".join(raw for _, raw in lines[begin:place])):
                shown = range(begin, place)
                dropped.update(at for at in shown if not _WITH_VALUE.search(lines[at][1][:_ENOUGH]))
            begin = None
    return [line for place, line in enumerate(lines) if place not in dropped]


def is_whole_program(lines: Sequence[Raw]) -> bool:
    """Whether all of it is the source of a program: it imports something, and prints no value.

    In a cell of a notebook with its output, a value stands between the statements.
    """
    import ast

    if not any(raw.lstrip().startswith((b"import ", b"from ")) for _, raw in lines):
        return False
    tree = _parsed(b"\n".join(raw for _, raw in lines))
    if tree is None:
        return False
    imports = [isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body]
    return any(imports) and not all(imports) and not any(map(_is_value, tree.body))


def _is_value(statement: ast.stmt) -> bool:
    import ast

    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return not is_text and not isinstance(value, ast.Call | ast.Await)


def _parsed(text: bytes) -> ast.Module | None:
    import ast
    import textwrap
    import warnings

    if len(text) > _LONGEST_PROGRAM:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(textwrap.dedent(text.decode("utf-8")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_program(text: bytes) -> bool:
    """Whether it is Python with an import or a call, which no message is."""
    import ast

    tree = _parsed(text)
    return tree is not None and any(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Call) for node in ast.walk(tree)
    )


def without_listings(lines: Sequence[Raw]) -> list[Raw]:
    """The lines, without the listing of the function above each first line marked as an error.

    pytest prints the whole function, with `>` before the statement that failed and `E` before the
    message. Functions of libraries contain the texts of all errors that they can raise.
    """
    starts = [raw[:_ENOUGH].decode("latin-1") for _, raw in lines]
    dropped: set[int] = set()
    for place, start in enumerate(starts):
        if not _ERROR.match(start) or (place and _ERROR.match(starts[place - 1])):
            continue
        for above in range(place - 1, max(place - 1 - _MOST_LINES, -1), -1):
            if _SOURCE.match(starts[above]):
                dropped.add(above)
            elif not _STATEMENT.match(starts[above]):
                # The statement that failed belongs to the error; it may go on over several lines.
                break
    return [line for place, line in enumerate(lines) if place not in dropped]


_CAUSE_OF_OURS = re.compile(
    rb"\d{1,2}\. WG\d{3} [a-z][\w-]{2,60}  (?:certain|likely|possible)?\s{0,4}$"
)
_END_OF_OURS = re.compile(rb"Details: whygpu rule WG\d{3}\s{0,4}$")
_MARKED = re.compile("(?:✗|✘|✖|x|!|\\?|·|✓|FAIL|\\[.\\]) ".encode())
_HEADLINE_OF_OURS = 8
"""The most lines of a headline above the first cause."""


def without_own_answers(lines: Sequence[Raw]) -> list[Raw]:
    """The lines, without earlier answers of `explain`, whose words are those of causes."""
    dropped: set[int] = set()
    begin: int | None = None
    for place, (_, raw) in enumerate(lines):
        head = raw[:_ENOUGH]
        if begin is None and b"WG" in head and _CAUSE_OF_OURS.match(head):
            above = range(place - 1, max(-1, place - 1 - _HEADLINE_OF_OURS), -1)
            marked = (at for at in above if _MARKED.match(lines[at][1][:_ENOUGH]))
            begin = next(marked, place)
        elif begin is not None and _END_OF_OURS.match(head):
            dropped.update(range(begin, place + 1))
            begin = None
    return [line for place, line in enumerate(lines) if place not in dropped]
