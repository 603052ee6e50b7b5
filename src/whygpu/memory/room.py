"""A GPU's memory, as a new process would find it."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.driver import Gpu
from whygpu.model.observed import Known, Observed


class Room(NamedTuple):
    total: int
    """As CUDA counts it: without what the driver keeps."""
    free: int
    capability_major: int | None
    """The first number of the GPU's compute capability, if it is known."""


def free_of(gpu: Gpu) -> Observed[int]:
    total, used = gpu.memory_total_bytes, gpu.memory_used_bytes
    if not isinstance(total, Known):
        return total
    if not isinstance(used, Known):
        return used
    return Known(max(total.value - used.value - _kept_by_driver(gpu), 0), used.source)


def room_of(gpu: Gpu, given_back: int = 0) -> Observed[Room]:
    """What there is now, with `given_back` bytes counted as free."""
    free, total = free_of(gpu), gpu.memory_total_bytes
    if not isinstance(free, Known):
        return free
    if not isinstance(total, Known):
        return total
    capability = gpu.compute_capability
    major = capability.value.partition(".")[0] if isinstance(capability, Known) else ""
    return Known(
        Room(
            total=total.value - _kept_by_driver(gpu),
            free=free.value + given_back,
            capability_major=int(major) if major.isdecimal() else None,
        ),
        free.source,
    )


def _kept_by_driver(gpu: Gpu) -> int:
    reserved = gpu.memory_reserved_bytes
    # A driver that does not report it counts it as used.
    return reserved.value if isinstance(reserved, Known) else 0
