"""The largest batch whose memory fits into some room, asked of an estimator as seldom as may be.

Memory is close to affine in the batch. Two estimates predict the answer, and the answer is asked
for itself before it is given: what is returned has been estimated, not extrapolated.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

MOST_ESTIMATES = 12
LARGEST = 1 << 20
"""No larger batch is looked for."""
CLOSE = 0.01
"""A bracket as narrow as this part of the answer is not worth many more estimates."""
MANY = 5
GROWTH = 16


class Largest(object):
    """What came of a search."""

    def __init__(self, batch: int, next_batch: "int | None") -> None:
        self.batch = batch
        """The largest that was seen to fit; 0 where not even one example does."""
        self.next_batch = next_batch
        """The smallest larger one that was seen not to; None where none was tried."""


def largest(
    need: "Callable[[int], float]",
    room: float,
    batch: int,
    seconds: "float | None" = None,
    clock: "Callable[[], float]" = time.time,
) -> "Largest":
    """`need(batch)` gives bytes. After so many seconds, what is known by then is the answer."""
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
    """The batch to ask for after these needs; None where they settle it."""
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
        # The line has not settled it: where memory goes in steps, halving does.
        guess = (fits + fails) // 2
    return max(min(guess, fails - 1), fits + 1)


def _bracket(known: "dict[int, float]", room: float) -> "tuple[int, int | None]":
    fails = min((batch for batch, need in known.items() if need > room), default=None)
    fits = [batch for batch in known if fails is None or batch < fails]
    return max(fits, default=0), fails


def _along_line(known: "dict[int, float]", room: float, ends: "Sequence[int]") -> int:
    """Where the line through two known batches reaches the room."""
    low, high = ends
    slope = (known[high] - known[low]) / float(high - low)
    if slope <= 0:
        return high * GROWTH
    return int(low + (room - known[low]) // slope)
