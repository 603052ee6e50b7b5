"""Pairs expressions that ask for devices with the values that a session or a program printed.

People are asked for `torch.version.cuda` and paste a session, a command with its output, or a cell
of a notebook with what it printed. The expression is parsed, so that the value is found in whatever
the program prints around it.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.model.log import Line, Shown, ShownOf
from whygpu.readers.shown_expressions import EXPRESSIONS, PROMPT
from whygpu.readers.stated_values import stated_values
from whygpu.readers.words_in import words_in

_WORDS = (
    *("__version__", "version.cuda", "version.hip", "version.version", "is_built", "is_available"),
    *("is_gpu_available", "device_count", "_devices", "default_backend", "get_backend"),
    *(".backend()", "jax.devices", "_available_gpus", "cuda available:", "false", "none"),
)
"""A line without one of these, in lower case, asks nothing and has no bare values."""
_ASKS = re.compile(
    r"__version__|VERSION|version\.(?:cuda|hip)|is_built|is_(?:gpu_)?available|device_count|_devices\("
    r"|default_backend|get_backend|\.backend\(\)|\bdevices\(\)|_available_gpus"
)
_COMMAND = re.compile(
    r"(?:python[\d.]{0,5}|py)(?:\.exe)?(?: -[A-Za-z]{1,3})? {1,3}"
    r"(?P<quote>['\"])(?P<code>.{1,600})(?P=quote)"
)
_OUT = re.compile(
    r"Out ?\[[\d ]{1,4}\]: ?|(?:[Ii]t )?(?:[Rr]eturn(?:s|ed)?|[Oo]utputs?|[Rr]esult|[Pp]rints"
    r"|[Gg]ives)"
    r"(?: is)?[ :=>-]{1,4}"
)
"""What stands before a value, by IPython or by a person."""
_LABEL = re.compile(r"(?:torch\.)?cuda(?:\.is_available| available):")
_CODE = re.compile(
    r"\s{0,12}(?:(?:import|from|with|for|if|else|def|try|except)\b|[#@]|[A-Za-z_]\w{0,40} ?=[^=])"
)
_COMMENT = re.compile(
    r"\)\s{0,8}# {0,4}(?:(?:it )?(?:prints?|gives?|returns?|outputs?|shows?|-{1,2}>|=>"
    r"|→)[: ]{1,3})?"
    r"(?P<value>\S[^#\n]{0,300})$"
)
_WARNING = re.compile(r"\s|[^\n]{0,300}Warning\b|\d{4}-\d\d-\d\d |[IWE]\d{4} ")
"""What a framework prints between the expression and its value."""
_LONGEST = 800
_MOST_BETWEEN = 6
_MOST_UNKNOWN = 2
"""Items of one statement whose values may be anything."""
_ANYTHING = r"[^\n]{0,80}?"
_BLANKS = r"\s{0,2}"


class _Item(NamedTuple):
    """A part of what a statement prints."""

    pattern: str
    of: ShownOf | None = None
    """None for text, and for values that say nothing about devices."""
    before: str = ""
    after: str = ""
    """Patterns of the text around the value, as in an f-string."""


class _Printed(NamedTuple):
    """What a statement prints: a line with these items."""

    items: tuple[_Item, ...]
    separator: str
    asked: int
    opened: str = ""
    closed: str = ""
    silent: bool = False
    """A session prints nothing if the value is None."""


def shown_values(lines: Sequence[Line]) -> tuple[Shown, ...]:
    printed = _printed_values(lines)
    known = {value.line for value in printed}
    stated = [value for value in stated_values(lines) if value.line not in known]
    found = sorted((*printed, *stated), key=lambda value: value.line)
    return tuple(found) or _bare(lines)


def _printed_values(lines: Sequence[Line]) -> list[Shown]:
    if not words_in(lines, _WORDS):
        return []
    found: list[Shown] = []
    open_still: list[_Printed] = []
    between = 0
    for line in lines:
        text = line.text.strip()
        if not text or len(text) > _LONGEST or line.level != "none":
            continue
        prompt = PROMPT.match(text)
        if prompt is not None and prompt[0].strip() == ">>>":
            found += _silent(open_still, line.number)
        asked = _asked(text, prompt, line.number) if _may_ask(text) else []
        beside = _answer(_comment(text), asked, line.number)
        if beside is not None:
            values, open_still = beside
            found += values
            between = 0
            continue
        if asked:
            open_still = [*(() if prompt is not None else open_still), *asked]
            between = 0
            continue
        answer = _answer(_OUT.sub("", text, count=1), open_still, line.number)
        if answer is not None:
            values, open_still = answer
            found += values
        elif prompt is not None or between == _MOST_BETWEEN or not _goes_on(line.text):
            open_still = []
        else:
            between += 1
    return found


def _comment(text: str) -> str:
    """The value that somebody wrote beside an expression: print(f())  # []"""
    comment = _COMMENT.search(text)
    return comment["value"] if comment is not None else ""


def _goes_on(text: str) -> bool:
    """Whether the value may still come: this is other code, or a warning of the framework."""
    return _CODE.match(text) is not None or _WARNING.match(text) is not None


def _may_ask(text: str) -> bool:
    return _ASKS.search(text) is not None or _LABEL.fullmatch(text) is not None


def _silent(open_still: Sequence[_Printed], line: int) -> Iterator[Shown]:
    """The values of a session that has printed nothing before its next prompt."""
    if len(open_still) == 1 and open_still[0].silent:
        (item,) = open_still[0].items
        if item.of in ("torch-cuda", "torch-hip"):
            yield Shown(open_still[0].asked, open_still[0].asked, item.of, "None")


def _asked(text: str, prompt: re.Match[str] | None, line: int) -> list[_Printed]:
    """What the statements in a line print, if that says something about devices."""
    command = _COMMAND.search(text)
    code = text[prompt.end() :] if prompt is not None else text
    if command is not None:
        code = command["code"].replace('\\"', '"')
    elif _LABEL.fullmatch(text):
        code = "torch.cuda.is_available()"
    try:
        return _of_code(code.strip(), line, session=command is None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _of_code(code: str, line: int, *, session: bool) -> list[_Printed]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(code)
    found: list[_Printed] = []
    for statement in tree.body:
        if isinstance(statement, ast.Expr):
            is_last = statement is tree.body[-1]
            printed = _printed(statement.value, line, session=session and is_last)
            if printed is not None and any(item.of for item in printed.items):
                found.append(printed)
    return found


def _printed(node: ast.expr, line: int, *, session: bool) -> _Printed | None:
    """None if it prints nothing, or what it prints is not known."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
        separator = next((k.value for k in node.keywords if k.arg == "sep"), ast.Constant(" "))
        if not isinstance(separator, ast.Constant) or not isinstance(separator.value, str):
            return None
        items = tuple(map(_item, node.args))
        between = re.escape(separator.value).replace("\\\n", r"\s")
        printed = _Printed(items, _BLANKS if separator.value == " " else between, line)
    elif not session:
        return None
    elif isinstance(node, ast.Tuple):
        printed = _Printed(tuple(map(_item, node.elts)), ", ", line, r"\(", r",?\)")
    else:
        printed = _Printed((_item(node),), "", line, silent=True)
    unknown = sum(item.pattern == _ANYTHING for item in printed.items)
    return printed if unknown <= _MOST_UNKNOWN else None


def _item(node: ast.expr) -> _Item:
    if isinstance(node, ast.Constant):
        return _Item(re.escape(str(node.value).strip()))
    if isinstance(node, ast.JoinedStr):
        return _joined(
            [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([node.left, node.right])
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("str", "repr", "bool", "type")
        and len(node.args) == 1
    ):
        return _item(node.args[0])
    written = ast.unparse(node)
    for row in EXPRESSIONS:
        if row.expression.fullmatch(written):
            return _Item(f"(?:{row.form})", row.of)
    return _Item(_ANYTHING)


def _joined(parts: Sequence[ast.expr]) -> _Item:
    """Text with at most one value that is asked for."""
    items = [item for item in map(_item, parts) if item.pattern]
    if any(item.pattern == _ANYTHING for item in items):
        return _Item(_ANYTHING)
    places = [place for place, item in enumerate(items) if item.of is not None]
    if not places:
        return _Item(_BLANKS.join(item.pattern for item in items))
    if len(places) > 1:
        return _Item(_ANYTHING)
    value, texts = items[places[0]], [item.pattern for item in items]
    before = "".join(f"{text}{_BLANKS}" for text in texts[: places[0]])
    after = "".join(f"{_BLANKS}{text}" for text in texts[places[0] + 1 :])
    return value._replace(before=before + value.before, after=value.after + after)


def _answer(
    text: str, open_still: Sequence[_Printed], line: int
) -> tuple[list[Shown], list[_Printed]] | None:
    """The values that a line gives, and what is still without one; None if it gives none."""
    if not open_still:
        return None
    first, *later = open_still
    whole = _values(text, first, line)
    if whole is not None:
        return whole, later
    # Some people put each value on a line of its own.
    part = first._replace(items=first.items[:1], opened="", closed="")
    single = _values(text, part, line) if len(first.items) > 1 else None
    if single is None:
        return None
    return single, [first._replace(items=first.items[1:]), *later]


def _at_once(name: str, pattern: str) -> str:
    """The first match only. Trying all lengths of dozens of parts would take for ever."""
    return f"(?=(?P<{name}>{pattern}))(?P={name})"


def _values(text: str, printed: _Printed, line: int) -> list[Shown] | None:
    pattern = printed.opened
    for place, item in enumerate(printed.items):
        if place:
            pattern += _at_once(f"s{place}", printed.separator)
        if item.pattern == _ANYTHING:
            pattern += _ANYTHING
        else:
            whole = f"{item.before}(?P<v{place}>{item.pattern}){item.after}"
            pattern += _at_once(f"w{place}", whole)
    match = re.fullmatch(pattern + printed.closed, text)
    if match is None:
        return None
    return [
        Shown(line, printed.asked, item.of, match[f"v{place}"].strip("'\""))
        for place, item in enumerate(printed.items)
        if item.of is not None
    ]


_OF_CUDA = r"None|['\"]?\d{1,2}\.\d['\"]?"
_NEXT = r"[, ]{1,2}"
_BARE_VALUES = re.compile(
    rf"\(?(?:['\"]?(?P<version>\d\.\d{{1,2}}\.\d{{1,2}}(?:\+\w{{2,8}})?)['\"]?{_NEXT})?"
    rf"(?:(?P<before>{_OF_CUDA}){_NEXT}False|False{_NEXT}(?P<after>{_OF_CUDA}))"
    rf"(?:{_NEXT}0)?\)?"
)
"""What `print(torch.__version__, torch.version.cuda, torch.cuda.is_available())` prints, and the
usual variants. Only PyTorch has such a pair: a version of CUDA, or None, beside a truth value."""
_FEW_LINES = 6


def _bare(lines: Sequence[Line]) -> tuple[Shown, ...]:
    """Values without their expression, in a text that has hardly anything else."""
    if len(lines) > _FEW_LINES:
        return ()
    for line in lines:
        match = _BARE_VALUES.fullmatch(line.text.strip())
        if match is None:
            continue
        cuda = (match["before"] or match["after"]).strip("'\"")
        version = match["version"]
        return (
            *([Shown(line.number, 0, "torch-version", version)] if version else ()),
            Shown(line.number, 0, "torch-cuda", cuda),
            Shown(line.number, 0, "gpu-there", "False"),
        )
    return ()
