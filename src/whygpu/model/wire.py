"""What `whygpu run` tells the processes of a run, and what they record.

launch/bootstrap reads and writes it as plain JSON and does not know these types; launch/records.py
decodes it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from whygpu.model.policy import CallOutcome, Reading


class CallSetting(NamedTuple):
    """A call that every process of a run makes."""

    framework: str
    name: str
    arguments: dict[str, Any]


class ReadingSetting(NamedTuple):
    """A reading that every process of a run takes at its end."""

    framework: str
    name: str


class RunSettings(NamedTuple):
    """What `whygpu run` tells every process below it."""

    calls: tuple[CallSetting, ...] = ()
    readings: tuple[ReadingSetting, ...] = ()
    trace: bool = False
    profile: bool = False
    profile_from: int = 0
    """The first step whose work on the GPU is recorded; 0 for the default."""
    tf1: bool = False


class UsedDevice(NamedTuple):
    device: str
    """gpu:0 or cpu."""
    name: str = ""


class FrameworkEntry(NamedTuple):
    """What a process reports about one framework."""

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


class FoldedOperation(NamedTuple):
    """An operation that was placed on a device, and became a constant before it ran."""

    op: str
    device: str
    count: int  # type: ignore[assignment]  # a tuple has a method of this name


class Transfers(NamedTuple):
    """Tensors that moved from one device to another."""

    source: str
    target: str
    count: int  # type: ignore[assignment]  # a tuple has a method of this name
    bytes: int | None
    """None if the size of one of them is not known."""


class Trace(NamedTuple):
    """What a tracer saw of one framework."""

    ops: tuple[TracedOperation, ...]
    on_cpu_because: tuple[CpuReason, ...]
    notes: tuple[str, ...] = ()
    folded: tuple[FoldedOperation, ...] = ()
    transfers: tuple[Transfers, ...] = ()
    nothing_because: tuple[str, ...] = ()
    """Why no operation was seen; empty if some were, or if the tracer cannot tell."""


class ProcessEntry(NamedTuple):
    """The record that one process leaves. Its parts are decoded one by one (codec.decode_parts)."""

    pid: int = 0
    complete: bool = False
    frameworks: dict[str, FrameworkEntry] = {}
    calls: tuple[CallOutcome, ...] = ()
    readings: tuple[Reading, ...] = ()
    trace: dict[str, Trace] = {}
    imported: float | None = None
    ended: float | None = None
    memory: dict[str, Any] = {}
    """A ProcessMemory, decoded part by part as well."""
    profile: dict[str, Any] = {}
    """A ProcessProfile, if one was asked for."""
    notes: tuple[str, ...] = ()
