"""A failed request for memory, as an exception or a line of a log reports it."""

from __future__ import annotations

from typing import Literal, NamedTuple

MemoryPlace = Literal["gpu", "host", "shared-memory", "pinned"]
"""The GPU's memory; the computer's; /dev/shm; the computer's, page-locked for the GPU."""


class Shortage(NamedTuple):
    """Sizes are in bytes; None if they are not reported."""

    of: str
    """The source of the message: torch, tensorflow, xla, cuda, numpy, system, ..."""
    place: MemoryPlace
    asked: int | None
    free: int | None
    total: int | None
    held: int | None
    """Used by live tensors of this process."""
    text: str
    """The line with the message."""


class AllocatorState(NamedTuple):
    """What TensorFlow reported about the memory of one of its GPUs. Sizes are in bytes."""

    gpu: int
    limit: int
    in_use: int | None
    """Reported with a refusal only."""


class HopelessRequest(NamedTuple):
    """A request for more than TensorFlow may ever have on a GPU: no waiting helps."""

    gpu: int
    asked: int
    limit: int
