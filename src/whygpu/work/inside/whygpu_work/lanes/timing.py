"""Measures how long one call takes: after a warm-up, as many calls as a given time allows."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

WARM_UP = 2
FEWEST = 5
MOST = 300
PATIENCE = 20.0
"""Seconds: a call that takes longer is not repeated for better figures."""


def measured(
    call: "Callable[[], Any]", first_seconds: float, seconds: float, repeat: "int | None" = None
) -> "list[float]":
    """The seconds of each of several calls. `call` returns when its result is computed.

    `seconds` is the time to spend, `repeat` the number of calls if the user gave one.
    Empty if the first call took too long to be repeated.
    """
    if repeat is None and first_seconds > 2 * PATIENCE:
        return []
    for _ in range(WARM_UP):
        if length(call) > seconds:
            break
    lengths: "list[float]" = []
    while not _enough(lengths, seconds, repeat):
        lengths.append(length(call))
    return lengths


def _enough(lengths: "Sequence[float]", seconds: float, repeat: "int | None") -> bool:
    count, spent = len(lengths), sum(lengths)
    if repeat is not None:
        return count >= repeat
    if count >= MOST or (count >= 2 and spent > PATIENCE):
        return True
    return count >= FEWEST and spent >= seconds


def length(call: "Callable[[], Any]") -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def median(lengths: "Sequence[float]") -> float:
    ordered = sorted(lengths)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
