"""Memory that was asked for and not given, as an exception or a line of a log tells it."""

from __future__ import annotations

from typing import Literal, NamedTuple

MemoryPlace = Literal["gpu", "host", "shared-memory", "pinned"]
"""The GPU's memory; the computer's; /dev/shm; the computer's, page-locked for the GPU."""


class Shortage(NamedTuple):
    """Sizes are in bytes, None where nobody says."""

    of: str
    """Who says it: torch, tensorflow, xla, cuda, numpy, system, ..."""
    place: MemoryPlace
    asked: int | None
    free: int | None
    total: int | None
    held: int | None
    """By live tensors of this process."""
    text: str
    """The line that says so."""
