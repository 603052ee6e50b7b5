"""Repeats a load for a while, and takes the time of each repetition."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

SLICE_SECONDS = 0.05
"""One repetition: many steps, so that starting and waiting for them takes no part of it."""
FEWEST_SLICES = 3
MOST_STEPS = 4096


def repeated(
    step: "Callable[[], Any]",
    wait: "Callable[[Any], None]",
    amount: float,
    seconds: float,
    look: "Callable[[], None]",
) -> "list[float]":
    """The amount per second of each repetition. `look` is called while the GPU works."""
    wait(step())  # compiles, allocates, and raises the clocks
    # One step alone would not show how many are enough: the first ones may be slower.
    steps = 1
    while steps < MOST_STEPS and timed(step, wait, steps) < SLICE_SECONDS / 2:
        steps *= 2
    rates: "list[float]" = []
    end = time.perf_counter() + seconds
    while len(rates) < FEWEST_SLICES or time.perf_counter() < end:
        rates.append(amount * steps / timed(step, wait, steps, look))
    return rates


def timed(
    step: "Callable[[], Any]",
    wait: "Callable[[Any], None]",
    steps: int,
    look: "Callable[[], None]" = lambda: None,
) -> float:
    began = time.perf_counter()
    for _ in range(steps):
        last = step()
    look()
    wait(last)
    return time.perf_counter() - began
