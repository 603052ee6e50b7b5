"""What the part of whygpu inside a program writes down for us, as its JSON files have it.

launch/bootstrap writes them without knowing these types; launch/records.py reads them strictly.
"""

from __future__ import annotations

from typing import NamedTuple


class UsedDevice(NamedTuple):
    device: str
    """gpu:0 or cpu."""
    name: str = ""


class FrameworkEntry(NamedTuple):
    """What a process says of one framework."""

    version: str
    used: tuple[UsedDevice, ...] = ()
    peak_memory_bytes: int | None = None


class TracedOperation(NamedTuple):
    op: str
    device: str
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    seconds: float | None


class CpuReason(NamedTuple):
    """Why an operation ran on the CPU."""

    op: str
    reason: str
    detail: str


class Trace(NamedTuple):
    """What a tracer saw of one framework."""

    ops: tuple[TracedOperation, ...]
    on_cpu_because: tuple[CpuReason, ...]
    notes: tuple[str, ...] = ()


class CurveEntry(NamedTuple):
    of: str
    device: str
    began: float
    points: tuple[tuple[float, int, int], ...]
    """Seconds, and the least and the most bytes in use there."""
