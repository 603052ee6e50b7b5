"""What the terminal can show, and the way to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO, TypeVar

from whygpu.cli.surroundings import discard_output
from whygpu.errors import UsageError

Answer = TypeVar("Answer")
Mark = TypeVar("Mark")
NARROWEST = 40
WIDEST = 100


def width() -> int:
    """Columns to use: the terminal's, within reason; 80 where there is no terminal."""
    import shutil

    columns = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
    return max(NARROWEST, min(columns, WIDEST))


def write(text: str) -> None:
    """Print an answer. Where it cannot be taken, that is the caller's to mend."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise UsageError(f"cannot write to standard output: {error.strerror}") from error


def shows(text: str, stream: TextIO) -> bool:
    """Whether these characters can be written there."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def printable(answer: Answer) -> Answer:
    """What programs say of themselves may hold a terminal's commands; decoding takes them out."""
    from whygpu.model.codec import decode, encode

    return decode(type(answer), encode(answer))


def marks_for(marks: Mapping[Mark, str], plain: Mapping[Mark, str]) -> Mapping[Mark, str]:
    """Those that standard output can show."""
    return marks if shows("".join(marks.values()), sys.stdout) else plain


def use_color(choice: str, stream: TextIO | None = None) -> bool:
    """--color decides; else colour is for terminals, unless NO_COLOR or a dumb one forbids it."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return (stream or sys.stdout).isatty()
