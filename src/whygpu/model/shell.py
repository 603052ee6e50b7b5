"""Words of a command that somebody pastes into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_QUOTED_HOME = re.compile(r"(?<![\w'\"])'~(/[^']*)'(?!['\"\w])")


def quoted(word: str) -> str:
    """As the shell wants it. A home folder stays outside of the quotes: '~/x' is no path."""
    if word.startswith("~/"):
        rest = word[2:]
        return f"~/{shlex.quote(rest)}" if rest else word
    return shlex.quote(word)


def joined(words: Iterable[str]) -> str:
    return " ".join(map(quoted, words))


def with_home_unquoted(command: str) -> str:
    """A command in which a quoted path was shortened to '~/...', made valid again."""
    return _QUOTED_HOME.sub(lambda match: quoted(f"~{match[1]}"), command)
