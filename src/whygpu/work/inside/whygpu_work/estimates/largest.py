"""Finds the largest batch whose estimated memory fits, with as few estimates as possible.

Memory is close to a linear function of the batch. Two estimates predict the answer, and the answer
itself is estimated before it is returned: it is never extrapolated.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

MOST_ESTIMATES = 12
LARGEST = 1 << 20
"""The search does not go beyond this batch."""
CLOSE = 0.01
"""If the bracket is narrower than this fraction of the answer, the search soon stops."""
MANY = 5
GROWTH = 16


class Largest(object):
    """The result of a search."""

    def __init__(self, batch: int, next_batch: "int | None") -> None:
        self.batch = batch
        """The largest batch that fits; 0 if not even one example does."""
        self.next_batch = next_batch
        """The smallest larger batch that does not fit; None if none was tried."""


def largest(
    need: "Callable[[int], float]",
    room: float,
    batch: int,
    seconds: "float | None" = None,
    clock: "Callable[[], float]" = time.time,
) -> "Largest":
    """`need(batch)` returns bytes. After `seconds`, the best answer so far is returned."""
    began = clock()
    known = {batch: need(batch)}
    while len(known) < MOST_ESTIMATES:
        if seconds is not None and len(known) > 2 and clock() - began > seconds:
            break
        following = next_batch(known, room)
        if following is None:
            break
        known[following] = need(following)
    return Largest(*_bracket(known, room))


def next_batch(known: "dict[int, float]", room: float) -> "int | None":
    """The next batch to estimate, given what is known; None if the answer is settled."""
    fits, fails = _bracket(known, room)
    if fits >= LARGEST or fails == fits + 1:
        return None
    if fails is not None and len(known) >= MANY and fails - fits <= CLOSE * fits:
        return None
    if len(known) == 1:
        (batch,) = known
        return min(batch * 2, LARGEST) if fails is None else max(batch // 2, 1)
    if fails is None:
        return min(max(_along_line(known, room, sorted(known)[-2:]), fits + 1), LARGEST)
    ends = (fits, fails) if fits else sorted(known)[:2]
    guess = _along_line(known, room, ends)
    if len(known) >= MANY and len(known) % 2:
        # Memory may grow in steps, which a line does not describe: bisect.
        guess = (fits + fails) // 2
    return max(min(guess, fails - 1), fits + 1)


def _bracket(known: "dict[int, float]", room: float) -> "tuple[int, int | None]":
    fails = min((batch for batch, need in known.items() if need > room), default=None)
    fits = [batch for batch in known if fails is None or batch < fails]
    return max(fits, default=0), fails


def _along_line(known: "dict[int, float]", room: float, ends: "Sequence[int]") -> int:
    """The batch at which the line through two known batches reaches the limit."""
    low, high = ends
    slope = (known[high] - known[low]) / float(high - low)
    if slope <= 0:
        return high * GROWTH
    return int(low + (room - known[low]) // slope)
