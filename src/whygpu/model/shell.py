"""Quotes the words of a command that a user pastes into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def quoted(word: str) -> str:
    """Quoted for the shell. A leading ~ stays outside the quotes, so that the shell expands it."""
    if word.startswith("~/"):
        rest = word[2:]
        return f"~/{shlex.quote(rest)}" if rest else word
    return shlex.quote(word)


def joined(words: Iterable[str]) -> str:
    return " ".join(map(quoted, words))
