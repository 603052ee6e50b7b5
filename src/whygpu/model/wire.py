"""What the processes of a run record: launch/bootstrap writes it, launch/records.py decodes it.

The bootstrap writes plain JSON and does not know these types.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class CallSetting(NamedTuple):
    """A call that every process of a run is told to make."""

    framework: str
    name: str
    arguments: dict[str, Any]


class ReadingSetting(NamedTuple):
    """A reading that every process of a run is told to take at its end."""

    framework: str
    name: str


class RunSettings(NamedTuple):
    """What `whygpu run` tells every process below it."""

    calls: tuple[CallSetting, ...] = ()
    readings: tuple[ReadingSetting, ...] = ()
    trace: bool = False
    tf1: bool = False


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
