"""Leaves out most of what a log repeats.

A training prints the same line a thousand times with other numbers. The first, the last and some
in between say what all of them say: that it worked, how far it came, and until when.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from whygpu.readers.sieve import LINES_AFTER, LINES_BEFORE, TRACEBACK_LINES, WORDS

Raw = tuple[int, bytes]

AT_EACH_END = 6
IN_BETWEEN = 8
"""How many lines of one kind are kept. Whoever counts lines or epochs is content with fewer."""
KEPT = 2 * AT_EACH_END + IN_BETWEEN

_BARS = re.compile("[\u2500-\u259f]{1,200}")
"""The characters that progress bars consist of."""
_NOT_WORDS = bytes(
    byte for byte in range(128) if not (65 <= byte <= 90 or 97 <= byte <= 122) and byte != ord("\n")
)
"""Other alphabets stay: two messages of another language are two kinds of lines."""
_TRACEBACK = b"tracebackmostrecentcalllast"


def without_repetition(lines: Sequence[Raw]) -> list[Raw]:
    """The lines, without most of those that differ only in numbers.

    A kind of line with a word about a GPU or a failure is kept completely, and so are its
    neighbours: they may be parts of one message.
    """
    text = b"\n".join(raw for _, raw in lines)
    kinds = _without_bars(text).translate(None, _NOT_WORDS).split(b"\n")
    counts = Counter(kinds)
    if max(counts.values()) <= KEPT:
        return list(lines)
    telling = _telling(counts)
    places: dict[bytes, list[int]] = defaultdict(list)
    for place, kind in enumerate(kinds):
        if counts[kind] > KEPT and kind not in telling:
            places[kind].append(place)
    repeated = {place for found in places.values() for place in _left_out(found)}
    repeated -= _near(kinds, telling)
    return [line for place, line in enumerate(lines) if place not in repeated]


def _without_bars(text: bytes) -> bytes:
    if text.isascii():
        return text
    shown = text.decode("utf-8", "surrogateescape")
    return _BARS.sub("", shown).encode("utf-8", "surrogateescape")


def _left_out(places: Sequence[int]) -> set[int]:
    """All but the first, the last, and some at even distances."""
    middle = places[AT_EACH_END:-AT_EACH_END]
    kept = {middle[number * len(middle) // IN_BETWEEN] for number in range(IN_BETWEEN)}
    return set(middle) - kept


def _telling(kinds: Iterable[bytes]) -> set[bytes]:
    """The kinds of lines that have one of the words."""
    folded = {kind: kind.lower() for kind in kinds}
    together = b"\n".join(folded.values())
    present = [word for word in WORDS if word in together]
    return {kind for kind, text in folded.items() if any(word in text for word in present)}


def _near(kinds: Sequence[bytes], telling: set[bytes]) -> set[int]:
    """The places around lines of these kinds."""
    near: set[int] = set()
    for place, kind in enumerate(kinds):
        if kind in telling:
            after = TRACEBACK_LINES if _TRACEBACK in kind.lower() else LINES_AFTER
            near.update(range(place - LINES_BEFORE, place + after + 1))
    return near
