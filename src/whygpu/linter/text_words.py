"""Says which words a text contains, for many words at once.

A text repeats its identifiers: each of them once is a tenth of the text. What is searched there is
found ten times as fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

_IS_WORD = re.compile(r"\w")
_ONLY_WORDS = bytes(
    code if code >= 0x80 or _IS_WORD.match(chr(code)) else ord(" ") for code in range(256)
)
"""Replaces everything between words; bytes of characters that are not ASCII are kept."""


class Word(NamedTuple):
    """A word to search for."""

    text: str
    longest: bytes
    """Its longest identifier; in most cases there is no other."""
    is_identifier: bool


@lru_cache(maxsize=4096)
def word_of(text: str) -> Word:
    content = text.encode()
    longest = max(content.translate(_ONLY_WORDS).split(), key=len, default=b"")
    return Word(text, longest, longest == content)


class TextWords:
    """The words of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        content = text.encode("utf-8", "surrogatepass")
        self._identifiers = b"\n".join(set(content.translate(_ONLY_WORDS).split()))

    def __contains__(self, word: str) -> bool:
        return bool(self.present([word_of(word)]))

    def present(self, words: Iterable[Word]) -> list[str]:
        """Those of the words that the text contains, also as a part of an identifier."""
        text, identifiers = self._text, self._identifiers
        return [
            word
            for word, longest, is_identifier in words
            if longest in identifiers and (is_identifier or word in text)
        ]
