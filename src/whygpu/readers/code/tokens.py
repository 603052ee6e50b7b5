"""Checks that a text is small enough to parse: its syntax tree takes a hundred times its size."""

from __future__ import annotations

import re
from collections.abc import Iterable

from whygpu.readers import limits

_TOKEN = re.compile(r"\w+|[^\w \t]")


class TooManyTokens(ValueError):
    """The code has more tokens than can be parsed in bounded memory."""

    def __init__(self) -> None:
        super().__init__(f"its code has more than {limits.SOURCE_TOKENS:,} tokens")


def check_tokens(*texts: str) -> None:
    """Raise TooManyTokens if the texts have too many together."""
    if sum(map(len, texts)) <= limits.SOURCE_TOKENS:
        return
    if _count(texts) > limits.SOURCE_TOKENS:
        raise TooManyTokens


def _count(texts: Iterable[str]) -> int:
    """An upper bound: words of comments and strings count as well."""
    return sum(1 for text in texts for _ in _TOKEN.finditer(text))
