"""Write the manual page docs/whygpu.1 from the parser, as roff.

The libraries for that copy argparse's usage lines, which each Python lays out differently, and
leave out the one line that `man -k` searches.
"""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Iterator

from tools.reference import arguments, verbs
from whygpu.cli.help_page import EXAMPLES, PURPOSE
from whygpu.version import VERSION

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "whygpu.1"

_EXIT_CODES = {
    "0": "Nothing is wrong.",
    "1": "Something was found.",
    "2": "Wrong usage, or input that cannot be read.",
    "3": "A bug in whygpu.",
    "4": "Cannot tell; the answer says why.",
    "125, 126, 127": "Of run, which otherwise has the exit code of the program: whygpu failed, the "
    "policy cannot be met, there is no such command.",
}
_VARIABLES = {
    "VIRTUAL_ENV, CONDA_PREFIX": "The active environment, which is examined unless --python names "
    "another.",
    "NO_COLOR, FORCE_COLOR": "No colours; colours also in a pipe or a file.",
    "COLUMNS": "The width of pages.",
}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    summary = PURPOSE[:1].lower() + PURPOSE[1:].rstrip(".")
    yield r".\" Made by `make docs` from the program."
    yield f'.TH WHYGPU 1 "" "whygpu {VERSION}" "User Commands"'
    yield from (".SH NAME", f"whygpu \\- {_roff(summary)}")
    yield from (".SH SYNOPSIS", ".B whygpu", "[\\-\\-version]", ".I VERB", "[\\fIoptions\\fR]")
    yield ".SH DESCRIPTION"
    yield "Without a verb, whygpu does what its verb check does."
    yield from (".SH VERBS",)
    for name, verb in verbs():
        yield f".SS whygpu {name}"
        yield _roff(verb.description or "")
        for flags, meaning in arguments(verb):
            yield from (".TP", f".B {_roff(flags)}", _roff(meaning))
        yield from _block(verb.epilog or "")
    yield from (".SH EXIT STATUS", *_list(_EXIT_CODES))
    yield from (".SH ENVIRONMENT", *_list(_VARIABLES))
    yield from (".SH EXAMPLES", *_block(EXAMPLES))
    yield from (".SH SEE ALSO", "https://whygpu.readthedocs.io")


def _list(entries: dict[str, str]) -> Iterator[str]:
    for name, meaning in entries.items():
        yield from (".TP", f".B {_roff(name)}", _roff(meaning))


def _block(text: str) -> Iterator[str]:
    """Lines that stay as they are."""
    yield from (".PP", ".nf")
    yield from map(_roff, textwrap.dedent(text.rstrip()).splitlines())
    yield ".fi"


_CHARACTERS = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "~": r"\(ti", "^": r"\(ha"}
)
"""Characters that roff would obey, or print as similar ones that no shell understands."""


def _roff(text: str) -> str:
    """Plain text, of which nothing is a command."""
    written = text.translate(_CHARACTERS)
    return rf"\&{written}" if written.startswith(".") else written


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
