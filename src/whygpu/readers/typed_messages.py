"""A reading of a short text in which messages that were typed with mistakes are spelt correctly.

"CUDA eror: no kernel image is avaliable" is the message that everybody knows, and no cause finds
it. Every word of a message must be there, in its order, and each at most a slip away from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from whygpu.readers.layout import Numbered
from whygpu.tables.typed_messages import EXCEPTIONS, MESSAGES

_WORD = re.compile(r"[A-Za-z0-9_]+(?:['’][a-z]{1,2}\b)?")
_LONGEST_LINE = 600
_SHORTEST_WITH_SLIP = 4
_SHORTEST_WITH_TWO = 8
"""Letters of a word in which one mistake, or two, still leave no doubt about it."""
_LEAST_RIGHT = 0.5
"""The share of the words of a message that must be right, so that the rest is a mistake."""
_EXCEPTION = re.compile(r"(?<![\w])(?P<name>[A-Z][A-Za-z]{9,28})(?=:)")


class _Known(NamedTuple):
    text: str
    words: tuple[str, ...]


class _Word(NamedTuple):
    folded: str
    start: int
    end: int


def corrected(lines: Sequence[Numbered]) -> tuple[Numbered, ...] | None:
    """The lines with their messages spelt as programs do; None if that changes nothing."""
    changed = [(number, _line(text)) for number, text in lines]
    return None if changed == list(lines) else tuple(changed)


def _line(text: str) -> str:
    if len(text) > _LONGEST_LINE:
        return text
    text = _EXCEPTION.sub(_exception, text)
    words = _words(text)
    known = {word.folded for word in words}
    for message in _known():
        right = sum(word in known for word in message.words)
        if right < _LEAST_RIGHT * len(message.words):
            continue
        for first in range(len(words) - len(message.words) + 1):
            typed = words[first : first + len(message.words)]
            if all(_is_meant(t.folded, w) for t, w in zip(typed, message.words, strict=True)):
                text = text[: typed[0].start] + message.text + text[typed[-1].end :]
                words = _words(text)
                break
    return text


def _exception(match: re.Match[str]) -> str:
    name = match["name"]
    return next((known for known in EXCEPTIONS if _is_meant(name.lower(), known.lower())), name)


@cache
def _known() -> tuple[_Known, ...]:
    return tuple(
        # Without the marks behind the last word, which stay as they are.
        _Known(text[: _words(text)[-1].end], tuple(word.folded for word in _words(text)))
        # The longest first: a part of it is a message of its own.
        for text in sorted(MESSAGES, key=len, reverse=True)
    )


def _words(text: str) -> list[_Word]:
    return [
        _Word(re.sub(r"['’]", "", match[0]).lower(), match.start(), match.end())
        for match in _WORD.finditer(text)
    ]


def _is_meant(typed: str, word: str) -> bool:
    if typed == word:
        return True
    slips = 2 if len(word) >= _SHORTEST_WITH_TWO else 1 if len(word) >= _SHORTEST_WITH_SLIP else 0
    return abs(len(typed) - len(word)) <= slips and _distance(typed, word, slips) <= slips


def _distance(typed: str, word: str, most: int) -> int:
    """Letters that are missing, added, wrong, or swapped with the next one."""
    before: Sequence[int] = ()
    row: Sequence[int] = range(len(word) + 1)
    for i, letter in enumerate(typed, 1):
        following = [i]
        for j, wanted in enumerate(word, 1):
            cost = min(row[j] + 1, following[j - 1] + 1, row[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == word[j - 2] and typed[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            following.append(cost)
        if min(following) > most:
            return most + 1
        before, row = row, following
    return row[-1]
