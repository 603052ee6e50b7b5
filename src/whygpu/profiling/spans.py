"""Parts of the time: joined, intersected, looked up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from whygpu.model.device_recording import Copy, Kernel, Span


def joined(parts: Iterable[Span | Kernel | Copy]) -> list[Span]:
    """The time that is in any of the parts, in order and without overlaps."""
    found: list[Span] = []
    for part in sorted(parts, key=lambda each: each.begin):
        if found and part.begin <= found[-1].end:
            if part.end > found[-1].end:
                found[-1] = Span(found[-1].begin, part.end)
        else:
            found.append(Span(part.begin, part.end))
    return found


def common(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """The time that is in both. Both are joined."""
    found = []
    mine = other = 0
    while mine < len(left) and other < len(right):
        begin = max(left[mine].begin, right[other].begin)
        end = min(left[mine].end, right[other].end)
        if begin < end:
            found.append(Span(begin, end))
        if left[mine].end < right[other].end:
            mine += 1
        else:
            other += 1
    return found


def without(whole: Sequence[Span], removed: Sequence[Span]) -> list[Span]:
    """The time of the first that is not in the second. Both are joined."""
    found = []
    for part in whole:
        begin = part.begin
        for hole in _overlapping(part, removed):
            if hole.begin > begin:
                found.append(Span(begin, hole.begin))
            begin = max(begin, hole.end)
        if begin < part.end:
            found.append(Span(begin, part.end))
    return found


def _overlapping(part: Span, others: Sequence[Span]) -> list[Span]:
    first = max(bisect_right(others, part.begin, key=lambda each: each.begin) - 1, 0)
    found = []
    for other in others[first:]:
        if other.begin >= part.end:
            break
        if other.end > part.begin:
            found.append(other)
    return found


def seconds_of(parts: Iterable[Span]) -> float:
    return sum(part.end - part.begin for part in parts)


class Lookup:
    """Whether a moment is in one of the parts."""

    def __init__(self, parts: Sequence[Span]) -> None:
        self._parts = parts
        self._begins = [part.begin for part in parts]

    def __contains__(self, moment: float) -> bool:
        place = bisect_right(self._begins, moment) - 1
        return place >= 0 and moment < self._parts[place].end

    def gap(self, moment: float) -> Span | None:
        """The time without any part around a moment; None if a part is there, or at the edges."""
        place = bisect_right(self._begins, moment) - 1
        if place < 0 or place + 1 >= len(self._parts) or moment < self._parts[place].end:
            return None
        return Span(self._parts[place].end, self._parts[place + 1].begin)
