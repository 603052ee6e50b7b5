"""Private data in percent-encoded words, as in the query of a URL."""

from __future__ import annotations

import re
from collections.abc import Callable

from whygpu.model.lazy_regex import late
from whygpu.privacy.rules import PLACEHOLDER

_ESCAPE = late(r"%(?:[2-7][0-9A-Fa-f]|0[9aAdD])")
"""Escapes of the characters in private data: printable ones, and line breaks."""
_WORD = late(r"[^\s\"'`<>\\]{3,8192}")
_UNFIT = late(rf"({PLACEHOLDER})|[\s\"'`<>\\{{}}]")
"""Characters that a word cannot contain unescaped; placeholders stay readable."""
_LEVELS = 3
"""A URL in the query of a URL is encoded twice."""


def clean_encoded(text: str, clean: Callable[[str], str]) -> str:
    """The text with each encoded word cleaned in its decoded form, if that removes anything."""
    if not _ESCAPE.search(text):
        return text

    def cleaned_word(match: re.Match[str]) -> str:
        word = match[0]
        for _ in range(_LEVELS):
            decoded = _ESCAPE.sub(lambda escape: chr(int(escape[0][1:], 16)), word)
            if decoded == word:
                break
            cleaned = clean(decoded)
            if cleaned != decoded:
                return _UNFIT.sub(_encoded, cleaned)
            word = decoded
        return match[0]

    return _WORD.sub(cleaned_word, text)


def _encoded(match: re.Match[str]) -> str:
    return match[1] or f"%{ord(match[0]):02X}"
