"""What processes of the user's tell us: records of a run, and messages of a task.

launch/bootstrap and work/inside write them without knowing these types; launch/records.py and
work/task_process.py hold what comes against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args, get_origin

from whygpu.model.codec import DecodeError, decode, hints, is_record


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


class ProgressMessage(NamedTuple):
    text: str


class PartMessage(NamedTuple):
    name: str
    bytes: float
    how: str
    note: str = ""


class EstimateMessage(NamedTuple):
    batch: int
    framework: str
    is_function: bool
    parts: tuple[PartMessage, ...]
    peak_bytes: float
    needs_bytes: float
    notes: tuple[str, ...]
    source: str
    phase: str = ""


class LargestMessage(NamedTuple):
    batch: int
    next_batch: int | None


class WayMessage(NamedTuple):
    name: str
    batch: int
    needs_bytes: float


class HostReading(NamedTuple):
    now: float
    peak: float
    address_space: float | None = None
    anonymous: float | None = None
    in_use: float | None = None


class DeviceReading(NamedTuple):
    now: float
    peak: float
    name: str | None = None
    limit: float | None = None
    need: float | None = None
    gradients: float | None = None


class ReadingMessage(NamedTuple):
    host: HostReading | None = None
    device: DeviceReading | None = None
    frameworks: dict[str, str | None] | None = None
    sources: tuple[str, ...] = ()
    one_program: bool = False


class StepMessage(NamedTuple):
    number: int
    step_seconds: float
    host: HostReading | None = None
    device: DeviceReading | None = None


class ReferenceMessage(NamedTuple):
    ran: bool
    backend: str | None
    reason: str


MESSAGES: Mapping[str, type] = {
    "progress": ProgressMessage,
    "estimate": EstimateMessage,
    "largest": LargestMessage,
    "way": WayMessage,
    "start": ReadingMessage,
    "named": ReadingMessage,
    "loaded": ReadingMessage,
    "broken": ReadingMessage,
    "sources": ReadingMessage,
    "step": StepMessage,
    "reference": ReferenceMessage,
}
"""By the kind of a task's message."""


def check_message(message: Mapping[str, Any]) -> None:
    """Raise DecodeError where a message is not what its kind says; further fields may be there."""
    kind = MESSAGES.get(message["kind"])
    if kind is not None:
        _check_fields(kind, message, message["kind"])


def _check_fields(kind: Any, data: Any, path: str) -> None:
    if not isinstance(data, Mapping):
        raise DecodeError(path, "an object", data)
    for name, hint in hints(kind):
        if name in data or name not in kind._field_defaults:
            _check(hint, data.get(name), f"{path}.{name}")


def _check(hint: Any, data: Any, path: str) -> None:
    arguments = get_args(hint)
    record = next((each for each in (hint, *arguments) if is_record(each)), None)
    if record is None:
        decode(hint, data, path)
    elif get_origin(hint) is tuple:
        if not isinstance(data, list):
            raise DecodeError(path, "a list", data)
        for each in data:
            _check_fields(record, each, path)
    elif data is not None or type(None) not in arguments:
        _check_fields(record, data, path)
