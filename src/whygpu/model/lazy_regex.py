"""Regular expressions that are compiled when they are first used.

The catalogue has hundreds of them, for logs and for source. A check of a machine uses few of them,
and compiling all of them would double the start time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import cast


class _Late:
    """A stand-in for a compiled pattern, with the methods that causes use."""

    __slots__ = ("_compiled", "_flags", "_words", "pattern")

    def __init__(self, source: str, flags: int) -> None:
        self.pattern = source
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None
        self._words: tuple[str, ...] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        if self._words is None:
            from whygpu.model.phrase_words import WORDS

            found = WORDS.get(_key(self.pattern, self._flags), ())
            self._words = tuple(in_outline(word) for word in found)
        return self._words

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
    """Like re.compile, but the pattern is compiled at its first use."""
    return cast("re.Pattern[str]", _Late(source, flags))


def compiled(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The pattern itself, whether it came from late() or not."""
    return pattern.compiled if isinstance(pattern, _Late) else pattern


_DIGITS = re.compile(r"\d+")


def outline_of(text: str) -> str:
    """The text in lower case, with each number as 0, and each line that is then the same once.

    A log repeats its lines with other numbers, so this is much shorter. What is not in it is not in
    the text either.
    """
    lines = _DIGITS.sub("0", text.lower()).split("\n")
    return "\n".join(dict.fromkeys(lines))


def in_outline(word: str) -> str:
    """What an outline contains if its text contains the word."""
    return max(_DIGITS.sub("0", word).split("\n"), key=len)


def words_of(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Every text with a match has at least one of them in its outline. Empty if none are known."""
    return pattern.words if isinstance(pattern, _Late) else ()


def may_match(pattern: re.Pattern[str], outline: str) -> bool:
    """Whether a text with this outline contains one of the words that every match contains."""
    words = words_of(pattern)
    # A loop, because any() with a generator takes twice as long, and this is asked often.
    for word in words:
        if word in outline:
            return True
    return not words


def phrase_key(pattern: re.Pattern[str]) -> str:
    """Identifies a pattern in the generated table of words."""
    return _key(pattern.pattern, compiled(pattern).flags)


def _key(source: str, flags: int) -> str:
    from zlib import crc32

    ignores_case = bool(flags & re.IGNORECASE)
    return f"{crc32(source.encode()):08x}{len(source):x}{ignores_case:d}"
