"""Searches only the lines of a text that contain a word: much faster than to search all of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator


def lines_with(text: str, words: Iterable[str]) -> Iterator[str]:
    """The lines that contain one of the words; a line with several words comes several times."""
    for word in words:
        found = text.find(word)
        while found >= 0:
            start, end = text.rfind("\n", 0, found) + 1, text.find("\n", found)
            yield text[start : end if end >= 0 else None]
            found = text.find(word, end) if end >= 0 else -1


def has_line(words: Iterable[str], pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """A test: has a text a line that contains one of the words, and a match of the pattern?"""
    chosen = tuple(words)

    def test(text: str) -> bool:
        return any(pattern.search(line) for line in lines_with(text, chosen))

    return test
