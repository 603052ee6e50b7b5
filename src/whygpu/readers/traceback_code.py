"""Turns the code that a traceback shows into a program for code detectors.

A traceback quotes the statement that failed. The checks of `lint` for such a statement also work
here, if the exception is of a kind that the statement explains.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from whygpu.model.log import Line, Raised

if TYPE_CHECKING:
    from whygpu.model.program import Program

_TELLING = {
    "IndexError": re.compile(""),
    "StopIteration": re.compile(""),
    "ValueError": re.compile(
        "not enough values to unpack|is an empty sequence|iterable argument is empty"
    ),
}
"""Exceptions that the shown statement explains, by their messages: something has too few items."""
_WORDS = ("_devices", "device_configuration", "set_memory_growth", "jax.devices", "getGPUs")
"""Parsing a statement without any of these would find nothing."""
_CONVENTIONS = (
    "import tensorflow\nimport tensorflow as tf\nimport jax\nimport GPUtil\nimport GPUtil as GPU\n"
)
"""The usual meaning of these names in programs, unless the shown code defines them."""
_UNDERLINE = re.compile(r"[\s^~]{1,400}")
_FRAME = re.compile(r"\s{0,16}File \"|[~/\w<]\S{0,300} in \S|(?:File|Cell|Input) (?:In ?)?\S")
_NUMBERED = re.compile(r"\s{0,12}(?P<arrow>-{1,6}> ?)?\d{1,6}(?:[ \t](?P<code>[^\n]{0,400}))?")
_MOST_LINES = 16
_LONGEST = 4000
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def with_programs(lines: Sequence[Line], raised: Sequence[Raised]) -> tuple[Raised, ...]:
    """The exceptions, with the failed code if it can matter."""
    return tuple(
        exception._replace(program=_program(lines, exception))
        if exception.type in _TELLING and _TELLING[exception.type].search(exception.message)
        else exception
        for exception in raised
    )


def _program(lines: Sequence[Line], exception: Raised) -> Program | None:
    shown = _shown(lines, exception.line)
    if not any(word in text for text in shown for word in _WORDS):
        return None
    from whygpu.readers.code.source import Source, SourceProblem, parse, program

    for text in _readings(shown):
        source = Source("traceback", _CONVENTIONS + text)
        try:
            return program(source, parse(source))
        except (SourceProblem, RecursionError):
            continue
    return None


def _shown(lines: Sequence[Line], raised_at: int) -> list[str]:
    """The lines of code above an exception that belong to its innermost frame."""
    end = bisect_left(lines, raised_at, key=lambda line: line.number)
    shown: list[str] = []
    numbered = False
    for line in reversed(lines[max(0, end - _MOST_LINES) : end]):
        text = line.text.rstrip()
        if not text or _UNDERLINE.fullmatch(text):
            continue
        if _FRAME.match(text):
            break
        number = _NUMBERED.fullmatch(text)
        if number is None and numbered:
            break
        numbered = number is not None
        if number is None:
            shown.append(text[:_LONGEST])
        elif number["code"]:
            shown.append(number["code"])
        if not numbered and not text.startswith(" "):
            break
    return shown[::-1]


def _readings(shown: Sequence[str]) -> Iterator[str]:
    """The lines as Python: unchanged, completed, or the last statement alone."""
    from textwrap import dedent

    whole = dedent("\n".join(shown))
    for text in (whole, *(line.strip() for line in reversed(shown))):
        yield text
        yield _completed(text)


def _completed(text: str) -> str:
    """Complete a statement whose end is not shown: close brackets, add a body."""
    opened: list[str] = []
    for character in text:
        if character in _CLOSING:
            opened.append(_CLOSING[character])
        elif opened and character == opened[-1]:
            opened.pop()
    whole = text + "".join(reversed(opened))
    if whole.startswith("elif "):
        whole = whole[2:]
    return f"{whole} pass" if whole.endswith(":") else whole
