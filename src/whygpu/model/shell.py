"""Words of a command that somebody pastes into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def quoted(word: str) -> str:
    """As the shell wants it. A home folder stays outside of the quotes: '~/x' is no path."""
    if word.startswith("~/"):
        rest = word[2:]
        return f"~/{shlex.quote(rest)}" if rest else word
    return shlex.quote(word)


def joined(words: Iterable[str]) -> str:
    return " ".join(map(quoted, words))
