"""Finds the smallest sets of things that make something happen (delta debugging).

`happens` is asked about sets of positions. Zeller and Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", IEEE TSE 28(2), 2002, describe the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple

Positions = tuple[int, ...]
Happens = Callable[[Positions], bool]

MOST_SETS = 8
"""If more sets than this are each enough, the rest is not looked for."""

MOST_TRIED = 2000
"""Sets of one and of two positions that are tried if a larger set was found."""


class OutOfTrials(Exception):
    """The search used all the trials, or all the time, that it may use."""


class Sets(NamedTuple):
    found: tuple[Positions, ...]
    """No two have a position in common. Of each, no part is enough."""
    complete: bool
    """Whether everything outside the sets together is not enough."""


def smallest_sets(happens: Happens, positions: Sequence[int]) -> Sets:
    """Sets that are each enough, the first one first; there must be at least one."""
    found: list[Positions] = []
    rest = tuple(positions)
    try:
        while rest and happens(rest):
            if len(found) == MOST_SETS:
                return Sets(tuple(found), complete=False)
            found.append(smallest_set(happens, rest))
            rest = tuple(place for place in rest if place not in found[-1])
    except OutOfTrials:
        return Sets(tuple(found), complete=False)
    return Sets(tuple(found), complete=True)


def smallest_set(happens: Happens, positions: Positions) -> Positions:
    """A set that is enough, and is not if one of its positions is left out.

    If one or two positions are enough, it has no more than that, unless they are too many to try.
    """
    found = _reduced(happens, positions)
    for size in (1, 2):
        if len(found) <= size:
            break
        candidates = islice(combinations(positions, size), MOST_TRIED)
        try:
            smaller = next(filter(happens, candidates), None)
        except OutOfTrials:
            break
        if smaller is not None:
            return smaller
    return found


def _reduced(happens: Happens, positions: Positions) -> Positions:
    """Zeller's ddmin: try parts, then everything but a part, then smaller parts."""
    parts = 2
    while len(positions) > 1:
        pieces = list(_pieces(positions, parts))
        smaller = next(filter(happens, pieces), None)
        if smaller is not None:
            positions, parts = smaller, 2
            continue
        if parts > 2:
            remainders = (tuple(p for p in positions if p not in set(piece)) for piece in pieces)
            smaller = next(filter(happens, remainders), None)
            if smaller is not None:
                positions, parts = smaller, max(parts - 1, 2)
                continue
        if parts >= len(positions):
            break
        parts = min(2 * parts, len(positions))
    return positions


def _pieces(positions: Positions, parts: int) -> Iterator[Positions]:
    """The positions in this many parts of nearly equal length."""
    start = 0
    for number in range(1, parts + 1):
        end = len(positions) * number // parts
        yield positions[start:end]
        start = end
