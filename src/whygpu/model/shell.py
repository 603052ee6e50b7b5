"""Quotes the words of a command that a user pastes into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Literal

from whygpu.model.lazy_regex import late

Shell = Literal["posix", "windows"]
"""`windows` is cmd.exe and PowerShell: the commands work in both."""

_PLAIN_ON_WINDOWS = late(r"[A-Za-z0-9_.+=:/\\~-]+")
_SPECIAL_ON_WINDOWS = late(r"[\"%$`!^]")
"""What cmd.exe or PowerShell expands or ends a string with, even within double quotes."""
_PYTHON = late(r"python(\d+\.\d+)")


def quoted(word: str) -> str:
    """Quoted for the shell. A leading ~ stays outside the quotes, so that the shell expands it."""
    if word.startswith("~/"):
        rest = word[2:]
        return f"~/{shlex.quote(rest)}" if rest else word
    return shlex.quote(word)


def joined(words: Iterable[str]) -> str:
    return " ".join(map(quoted, words))


def for_windows(text: str) -> str | None:
    """A command for a POSIX shell as one for Windows; None if Windows has no equivalent.

    Only words and `&&` are translated. The launcher `py` starts a given Python there.
    """
    words = shlex.split(text)
    if any(_SPECIAL_ON_WINDOWS.search(word) for word in words) or words[:1] == ["export"]:
        return None
    return " ".join(map(_windows_word, words))


def _windows_word(word: str) -> str:
    if word == "&&" or _PLAIN_ON_WINDOWS.fullmatch(word):
        return _PYTHON.sub(r"py -\1", word) if _PYTHON.fullmatch(word) else word
    return f'"{word}"'
