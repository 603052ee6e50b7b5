"""What the processes of a run left behind, read and joined into one report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from whygpu.host.local import LocalHost
from whygpu.model.codec import DecodeError, decode, decode_partial, encode
from whygpu.model.memory_use import (
    Allocator,
    Curve,
    Footprint,
    Kept,
    NotedWork,
    Point,
    ProcessLimit,
    ProcessMemory,
    Rounds,
)
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.policy import CallOutcome, DeviceUsed, FrameworkUse, ProcessRecord, Reading
from whygpu.model.units import size_text
from whygpu.model.wire import CurveEntry, FrameworkEntry, Trace

LARGEST_FILE = 64 << 20
"""Bytes of one record; a model without its weights is the largest part, and has 8 MiB at most."""
MOST_RECORDS = 10_000
LONGEST_NOTE = 500
MOST_NOTES = 50

MOST_VALUES = 256
"""Of one reading; there is one for each GPU."""

T = TypeVar("T")


class _Unreadable(Exception):
    """A file holds no JSON object that could be read; the message says why."""


def read(folder: str) -> tuple[ProcessRecord, ...]:
    """Every process's record, oldest first. One that was cut short while writing has none.

    The program can write to the folder as well as we can: whatever it holds, and whatever is wrong
    with it, comes back as a note.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return ()
    except OSError as error:
        return unreadable(error)
    found = tuple(_record(folder, name) for name in names[:MOST_RECORDS])
    if len(names) > MOST_RECORDS:
        left_out = f"of {len(names)} processes, {MOST_RECORDS} have been looked at"
        found = (*found, _without_content(0, left_out))
    return found


def unreadable(error: Exception) -> tuple[ProcessRecord, ...]:
    """In place of the records, where reading them has failed in a way that nobody expected."""
    return (_without_content(0, f"the records cannot be read: {type(error).__name__}: {error}"),)


def _without_content(pid: int, note: str) -> ProcessRecord:
    return ProcessRecord(pid, False, (), (note,), {})


def _record(folder: str, name: str) -> ProcessRecord:
    number = name.partition("-")[0]
    pid = int(number) if number.isdecimal() and len(number) < 10 else 0
    try:
        data = _object(os.path.join(folder, name))
    except _Unreadable as error:
        return _without_content(pid, f"the record of process {pid} cannot be read: {error}")
    parts = _Parts(data)
    record = ProcessRecord(
        pid=parts.get("pid", _typed(int), pid),
        complete=parts.get("complete", _typed(bool), False),
        frameworks=parts.get("frameworks", _frameworks, ()),
        notes=(),
        trace=parts.get("trace", _traces, {}),
        imported=parts.get("imported", _typed(float | None), None),
        ended=parts.get("ended", _typed(float | None), None),
        calls=parts.get("calls", _several(CallOutcome), ()),
        readings=parts.get("readings", _readings, ()),
    )
    notes: tuple[str, ...] = parts.get("notes", _typed(tuple[str, ...]), ())
    memory = _Parts(parts.get("memory", _dictionary, {}))
    if memory.is_empty:
        try:
            memory = _Parts(_begun(folder, pid))
        except _Unreadable as error:
            parts.errors.append(f"what it had begun: {error}")
    record = record._replace(memory=_memory(memory))
    kept = [note[:LONGEST_NOTE] for note in notes[:MOST_NOTES]]
    broken = [*parts.errors, *(f"memory.{error}" for error in memory.errors)]
    kept += [f"a part of the record of process {pid} cannot be read: {why}" for why in broken]
    return record._replace(notes=tuple(kept))


class _Parts:
    """A JSON object whose parts are read one by one: one that is broken costs no other."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        self.is_empty = not data
        self.errors: list[str] = []

    def get(self, name: str, read: Callable[[Any, str], T], missing: T) -> T:
        if name not in self._data:
            return missing
        try:
            return read(self._data[name], name)
        except (DecodeError, RecursionError) as error:
            self.errors.append(str(error))
            return missing


def _typed(kind: Any) -> Callable[[Any, str], Any]:
    return lambda data, path: decode(kind, data, path)


def _optional(kind: Any) -> Callable[[Any, str], Any]:
    return lambda data, path: decode_partial(kind, data, path) if data else None


def _several(kind: Any) -> Callable[[Any, str], Any]:
    return lambda data, path: tuple(decode_partial(kind, each, path) for each in _list(data, path))


def _list(data: Any, path: str) -> list[Any]:
    if not isinstance(data, list):
        raise DecodeError(path, "a list", data)
    return data


def _dictionary(data: Any, path: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DecodeError(path, "an object", data)
    return data


def _frameworks(data: Any, path: str) -> tuple[FrameworkUse, ...]:
    entries = {
        decode(str, name, path): decode_partial(FrameworkEntry, entry, f"{path}.{name}")
        for name, entry in _dictionary(data, path).items()
    }
    return tuple(
        FrameworkUse(
            name, entry.version, tuple(used.device for used in entry.used), entry.peak_memory_bytes
        )
        for name, entry in entries.items()
    )


def _traces(data: Any, path: str) -> dict[str, Any]:
    return {
        decode(str, name, path): encode(decode_partial(Trace, trace, f"{path}.{name}"))
        for name, trace in _dictionary(data, path).items()
    }


def _readings(data: Any, path: str) -> tuple[Reading, ...]:
    found: tuple[Reading, ...] = _several(Reading)(data, path)
    return tuple(each._replace(value=_reported(each.value, path)) for each in found)


def _reported(value: Any, path: str) -> Any:
    """The program can write to the record: a value is a scalar, or a short list of them."""
    if isinstance(value, list) and len(value) <= MOST_VALUES:
        return [_scalar(each, path) for each in value]
    return _scalar(value, path)


def _scalar(value: Any, path: str) -> Any:
    if type(value) not in (bool, int, float, str, type(None)):
        raise DecodeError(path, "a number, a text, true, false or null", value)
    return decode(type(value), value, path)


def _memory(parts: _Parts) -> ProcessMemory:
    return ProcessMemory(
        error=parts.get("error", _typed(str), ""),
        curves=parts.get("curves", _curves, ()),
        allocators=parts.get("allocators", _several(Allocator), ()),
        steps=parts.get("steps", _typed(int | None), None),
        rounds=parts.get("rounds", _several(Rounds), ()),
        in_loop=parts.get("in_loop", _typed(bool), True),
        kept=parts.get("kept", _several(Kept), ()),
        batch=parts.get("batch", _typed(int | None), None),
        limit=parts.get("limit", _optional(ProcessLimit), None),
        work=parts.get("work", _work, None),
        imported=parts.get("imported", _optional(Footprint), None),
    )


def _curves(data: Any, path: str) -> tuple[Curve, ...]:
    entries = decode(tuple[CurveEntry, ...], data, path)
    return tuple(
        Curve(each.of, each.device, each.began, tuple(Point(*point) for point in each.points))
        for each in entries
    )


_UNCHANGED = ("data", "python", "program", "package", "search_path", "input")
"""Parts of the noted work that another process is given: a path may hold any byte."""


def _work(data: Any, path: str) -> NotedWork | None:
    if not data:
        return None
    work = decode_partial(NotedWork, data, path)
    given = {name: data[name] for name in _UNCHANGED if name in data}
    if "search_path" in given:
        given["search_path"] = tuple(given["search_path"])
    return work._replace(**given)


def _begun(folder: str, pid: int) -> dict[str, Any]:
    """What a process noted on its way that ended without a word."""
    path = os.path.join(folder, f"{pid}.work")
    return _object(path) if os.path.lexists(path) else {}


def _object(path: str) -> dict[str, Any]:
    """A JSON object from a file of a size that can be."""
    content = LocalHost().read_bytes(path, LARGEST_FILE + 1)
    if not isinstance(content, Known):
        raise _Unreadable(content.reason if isinstance(content, Unknown) else "it has gone")
    if len(content.value) > LARGEST_FILE:
        raise _Unreadable(f"it has more than {size_text(LARGEST_FILE)}")
    try:
        data = json.loads(content.value.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError, MemoryError) as error:
        raise _Unreadable(f"{type(error).__name__}: {error!s:.200}") from error
    if not isinstance(data, dict):
        raise _Unreadable("it holds no JSON object")
    return data


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def device_used(records: Sequence[ProcessRecord]) -> DeviceUsed:
    """The GPU if any process used one, else the CPU if a framework ran at all."""
    devices = [device for record in records for use in record.frameworks for device in use.devices]
    if any(device.startswith("gpu") for device in devices):
        return "gpu"
    return "cpu" if devices else "none"


def peak_memory(records: Sequence[ProcessRecord], device: DeviceUsed, rss: int) -> Observed[int]:
    """GPU memory of the process that took most, where the GPU was used; else main memory."""
    if device != "gpu":
        return Known(rss, "the largest process of the run") if rss else Absent("the run")
    peaks = [sum(use.peak_memory_bytes or 0 for use in record.frameworks) for record in records]
    best = max(peaks, default=0)
    return Known(best, "the frameworks' own counters") if best else Absent("the frameworks")
