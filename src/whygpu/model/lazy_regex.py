"""Regular expressions that are compiled when they are first used.

The catalogue has hundreds of them, for logs and for source. Whoever asks about a machine uses few,
and compiling all of them would double the time of a start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import cast


class _Late:
    """Stands in for a compiled pattern, as far as causes use one."""

    __slots__ = ("_compiled", "_flags", "pattern")

    def __init__(self, source: str, flags: int) -> None:
        self.pattern = source
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self._flags)
        return self._compiled

    def search(self, text: str, *bounds: int) -> re.Match[str] | None:
        return self.compiled.search(text, *bounds)

    def match(self, text: str, *bounds: int) -> re.Match[str] | None:
        return self.compiled.match(text, *bounds)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.compiled.fullmatch(text)

    def finditer(self, text: str, *bounds: int) -> Iterator[re.Match[str]]:
        return self.compiled.finditer(text, *bounds)

    def findall(self, text: str) -> list[str]:
        return self.compiled.findall(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self.compiled.sub(replacement, text)


def late(source: str, flags: int = 0) -> re.Pattern[str]:
    """Like re.compile, at the first use."""
    return cast("re.Pattern[str]", _Late(source, flags))


def compiled(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The pattern itself, whether it came from late() or not."""
    return pattern.compiled if isinstance(pattern, _Late) else pattern
