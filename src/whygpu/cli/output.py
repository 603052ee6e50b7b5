"""The one exit: everything that whygpu prints or saves goes through this module.

A verb hands over the value that it found and the function that renders it. The exit

1. redacts every text of the value (`privacy.Redactor`): answers are pasted into issues, and
   `~/venv` is as useful as the whole path;
2. removes what a terminal would obey (`model/outside_text.py`), whether or not the output is a
   terminal now: a file is shown on one later. The colours are added afterwards and are our own;
3. chooses width, marks and colour by what the stream can show;
4. writes: answers to standard output, messages to standard error, files through `host/writing.py`.

Four things are not redacted:

- the *names of files* in the findings of `lint`, because editors, code scanning and GitHub open
  the file by that name. They are made safe for terminals in text; JSON escapes them;
- the *patch* of `lint --diff`, which must apply. A pipe or a file gets its exact bytes, a terminal
  gets safe text;
- our own pages and help (`own`), and the identifiers of GPUs where `run` lists what there is to
  choose from;
- what a program under `run` prints, which does not come here at all.

A path in a command to paste may become `~/x`, but never `'~/x'`, which no shell expands
(`model/shell.py`), and only in one's own home: somebody else's `~/x` would be another file. The
same goes for a path that the user has typed and that an error is about.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import pairwise

from whygpu.cli.help_page import columns_asked as _columns_asked
from whygpu.errors import UsageError

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a tenth of its time
if TYPE_CHECKING:
    from typing import Any, TextIO, TypeVar

    from whygpu.host.base import Platform
    from whygpu.privacy import Redactor

    T = TypeVar("T")

NARROWEST = 40
WIDEST = 100

_OUR_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")
_GPU_IDENTIFIER = re.compile(r"\b((?:GPU|MIG)-[0-9a-fA-F][0-9a-fA-F/-]{3,})")
_QUOTED_COMMAND = re.compile(r"`[^`\n]*`")
_display: list[Callable[[Any], bool]] = []
_NOT_FOR_JSON = re.compile(r"[^\n\x20-\x7e]")


def public(value: T, names: Collection[str] = (), *, exact_names: bool = False) -> T:
    """The value as it may be shown. `names` are fields that hold names of files."""
    from whygpu.model.outside_text import one_line, printable
    from whygpu.model.remedy import STEPS, Argument
    from whygpu.model.target import Installer
    from whygpu.model.texts import with_texts

    platform = _this_platform()
    redactor = _redactor(platform).for_one_answer()
    of_commands = _redactor(platform, keeps_other_homes=True).for_one_answer()

    def change(text: str, field: str) -> str:
        if field in names:
            return text if exact_names else one_line(text)
        return printable(str(redactor.tree(text, field)))

    def in_command(text: str, field: str) -> str:
        return printable(str(of_commands.tree(text, field)))

    def shown() -> T:
        return with_texts(value, change, in_command, (*STEPS, Argument, Installer))

    first = shown()
    # What one text shows to be a name goes from the texts before it as well.
    return shown() if redactor.has_learnt else first


def public_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command as they may be shown: an option gives its value away."""
    clean = _redactor(_this_platform()).for_one_answer().text
    shown = list(words)
    for place, (option, value) in enumerate(pairwise(words), 1):
        together = clean(f"{option} {value}")
        if option.startswith("-") and together.startswith(f"{option} "):
            shown[place] = together[len(option) + 1 :]
    return tuple(map(clean, shown))


def _this_platform() -> Platform:
    from whygpu.host.local import LocalHost

    return LocalHost().platform


@cache
def _redactor(platform: Platform, *, keeps_other_homes: bool = False) -> Redactor:
    from whygpu.privacy import Redactor

    return Redactor(platform, keeps_other_homes=keeps_other_homes)


def page(
    value: T,
    render: Callable[..., str],
    *,
    color: str,
    signs: Mapping[int, str] | None = None,
    names: Collection[str] = (),
) -> None:
    """A page for people: `render(value, width=, color=)` to standard output.

    The answer of a verb has a standing, and a mark for it before its headline: then `marks` are
    those that the stream can show. `signs` replaces other characters that it cannot show.
    """
    if _display and _display[-1](value):
        return
    write(_page(value, render, sys.stdout, color, signs, names))


@contextmanager
def shown_by(display: Callable[[Any], bool]) -> Iterator[None]:
    """Pages for people are shown by this function, unless it returns False: in a notebook."""
    _display.append(display)
    try:
        yield
    finally:
        _display.pop()


def page_on_error(value: T, render: Callable[..., str]) -> None:
    """The same on standard error, below the output of a program."""
    _write_error(_page(value, render, sys.stderr, "auto", None, ()))


def _page(
    value: T,
    render: Callable[..., str],
    stream: TextIO,
    color: str,
    signs: Mapping[int, str] | None,
    names: Collection[str],
) -> str:
    colored = use_color(color, stream)
    style: dict[str, Any] = {"width": width(stream), "color": colored}
    if hasattr(value, "standing"):
        from whygpu.render.marks import MARKS, PLAIN_MARKS

        style["marks"] = MARKS if shows("".join(MARKS.values()), stream) else PLAIN_MARKS
    text = _safe(render(public(value, names), **style), colored)
    return text if signs is None or shows(text, stream) else text.translate(signs)


def text(value: T, render: Callable[[T], str], names: Collection[str] = ()) -> None:
    """Lines that look the same everywhere."""
    write(_safe(render(public(value, names)), colored=False))


def data(value: T, render: Callable[[T], str], names: Collection[str] = ()) -> None:
    """JSON, to standard output. It is ASCII, so that no terminal and no locale can damage it."""
    write(_json_text(render(public(value, names, exact_names=True))))


def save(
    path: str,
    value: T,
    render: Callable[[T], str],
    *,
    is_json: bool,
    names: Collection[str] = (),
) -> None:
    """Write a file completely, or not at all: then UsageError says why."""
    from whygpu.host.writing import write_file

    made = render(public(value, names))
    content = (_json_text(made) if is_json else made).encode("utf-8", "backslashreplace")
    try:
        sys.stdout.flush()
        write_file(path, content)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {_why_not_writable(path, error)}") from error


def require_writable(option: str, path: str | None) -> str | None:
    """The absolute path, checked before the work: hours must not end in "permission denied"."""
    if path is None:
        return None
    from whygpu.host.writing import check_writable

    try:
        check_writable(path)
    except OSError as error:
        raise UsageError(f"{option} {path}: {_why_not_writable(path, error)}") from error
    # The program may change the current folder; the file must not move with it.
    return os.path.abspath(path)


def _why_not_writable(path: str, error: OSError) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    if isinstance(error, FileNotFoundError) and not os.path.isdir(folder):
        return f"there is no folder {folder}"
    if isinstance(error, IsADirectoryError):
        return "this is a folder; expected a file"
    return f"{error.strerror or error}; choose another file"


def is_something_else(path: str, start: bytes) -> bool:
    """Whether a file is there that does not start as ours do: most likely a log, snapshot or
    program that was meant as the input, which must not be lost."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            found = file.read(len(start))
    except OSError:
        return True
    return bool(found) and found.lower() != start.lower()


def own(text: str) -> None:
    """Our own words: pages of causes, help. Nothing in them came from outside."""
    write(text)


def patch(content: bytes) -> None:
    """A patch, byte by byte: any change would keep it from applying. A terminal gets safe text."""
    if sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
        from whygpu.model.outside_text import printable

        write(printable(content.decode("utf-8", "replace").replace("\r\n", "\n")))
        return
    with _full_or_closed():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def plain(text: str) -> str:
    """One text from outside as it may be shown."""
    return public(text)


def name(path: str) -> str:
    """The name of a file in a message, which the user has to find: safe, not redacted."""
    from whygpu.model.outside_text import one_line

    return one_line(path)


def say(text: str) -> None:
    """A message on standard error. If it cannot be written, the work continues."""
    _write_error(wrapped(f"whygpu: {plain(text)}\n"))


def say_error(text: str, typed: Collection[str]) -> None:
    """What is wrong with the words that were `typed`: paths among them come back as they were."""
    given = {path for word in typed for path in (word, word.partition("=")[2]) if "/" in path}
    paths = given | {folder for path in given if len(folder := os.path.dirname(path)) > 1}
    if not paths:
        say(text)
        return
    redactor = _redactor(_this_platform(), keeps_other_homes=True)
    # The longest first: one path may be the beginning of another.
    pattern = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
    parts = re.split(f"({pattern})", text)
    shown = [name(redactor.text(part)) if i % 2 else plain(part) for i, part in enumerate(parts)]
    _write_error(wrapped(f"whygpu: {''.join(shown)}\n"))


def say_choices(text: str) -> None:
    """A remark that lists GPUs to choose from: without their identifiers there is no choice."""
    parts = _GPU_IDENTIFIER.split(text)
    shown = "".join(part if place % 2 else plain(part) for place, part in enumerate(parts))
    _write_error(wrapped(f"whygpu: {shown}\n"))


def wrapped(message: str) -> str:
    """A message for standard error, wrapped if somebody reads it on a page of a known width.

    What stays whole: a line that is indented and what is in backquotes, which may be commands, and
    a word, which may be a path. In a pipe nothing is wrapped, whatever COLUMNS says: programs that
    start others often set it, and a message may be searched for.
    """
    if not sys.stderr.isatty():
        return message
    import textwrap

    lines = textwrap.TextWrapper(width(sys.stderr), break_long_words=False, break_on_hyphens=False)
    whole = _QUOTED_COMMAND.sub(lambda match: match[0].replace(" ", "\0"), message)
    return "".join(
        line if line[:1].isspace() else f"{lines.fill(line)}\n"
        for line in whole.splitlines(keepends=True)
    ).replace("\0", " ")


def say_own(text: str) -> None:
    """Our own words on standard error, as they are."""
    _write_error(text)


def write(text: str) -> None:
    """Write to standard output at once. UsageError if that is full."""
    with _full_or_closed():
        sys.stdout.write(text)
        sys.stdout.flush()


class _full_or_closed:  # noqa: N801
    """main() handles a closed pipe; a full disk becomes a UsageError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            discard(sys.stdout)
            raise UsageError(f"cannot write to standard output: {error.strerror}") from error


def _write_error(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Send the rest of the stream nowhere: it would fail again when Python exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _safe(text: str, colored: bool) -> str:
    """Remove what a terminal would obey once more, except for our own colours."""
    from whygpu.model.outside_text import printable

    if not colored:
        return printable(text)
    parts = _OUR_COLOUR.split(text)
    return "".join(part if place % 2 else printable(part) for place, part in enumerate(parts))


def _json_text(text: str) -> str:
    return _NOT_FOR_JSON.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"


def width(stream: TextIO | None = None) -> int:
    """Columns to use: those of COLUMNS, else the terminal's, within limits; else 80."""
    columns = _columns_asked()
    where = stream or sys.stdout
    if not columns and where.isatty():
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(where.fileno())[0]
    return max(NARROWEST, min(columns or 80, WIDEST))


def shows(text: str, stream: TextIO) -> bool:
    """Whether these characters can be written there."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def use_color(choice: str, stream: TextIO | None = None) -> bool:
    """--color decides, then NO_COLOR and FORCE_COLOR; else colour is for terminals."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if os.environ.get("TERM") == "dumb":
        return False
    return (stream or sys.stdout).isatty()
