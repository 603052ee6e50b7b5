"""Reads the records that the processes of a run left."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from whygpu.host.local import LocalHost
from whygpu.launch import profile_records
from whygpu.model.codec import decode_parts, encode
from whygpu.model.memory_use import NotedWork, ProcessMemory
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.outside_text import excerpt
from whygpu.model.policy import DeviceUsed, FrameworkUse, ProcessRecord
from whygpu.model.units import size_text
from whygpu.model.wire import FrameworkEntry, ProcessEntry

LARGEST_FILE = 64 << 20
"""Bytes of one record. Its largest part is a model without weights, of 8 MiB at most."""
MOST_RECORDS = 10_000
LONGEST_NOTE = 500
MOST_NOTES = 100


class _Unreadable(Exception):
    """A file holds no readable JSON object; the message says why."""


def read(folder: str) -> tuple[ProcessRecord, ...]:
    """The record of every process, oldest first. A process that was killed while writing has none.

    The program can write to the folder too: whatever is wrong with its contents becomes a note.
    """
    try:
        names = sorted(filter(_is_record, os.listdir(folder)))
    except FileNotFoundError:
        return ()
    except OSError as error:
        return unreadable(error)
    found = tuple(_record(folder, name) for name in names[:MOST_RECORDS])
    if len(names) > MOST_RECORDS:
        left_out = f"of {len(names)} processes, the records of {MOST_RECORDS} were read"
        found = (*found, _without_content(0, left_out))
    return found


def _is_record(name: str) -> bool:
    """Files beside a record have its name and another ending: 7-1000.kineto.json."""
    return name.endswith(".json") and name.count(".") == 1


def unreadable(error: Exception) -> tuple[ProcessRecord, ...]:
    """In place of the records, if reading them failed unexpectedly."""
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
    entry, errors = decode_parts(ProcessEntry, {"pid": pid, **data})
    noted = entry.memory
    if not noted:
        try:
            noted = _so_far(folder, str(pid), "work")
        except _Unreadable as error:
            errors = (*errors, f"the work that it had begun: {error}")
    memory, broken = decode_parts(ProcessMemory, noted, "memory.")
    kept = [excerpt(note, LONGEST_NOTE) for note in entry.notes[:MOST_NOTES]]
    recorded = entry.profile
    if not recorded and not entry.complete:
        try:
            recorded = _so_far(folder, name.partition(".")[0], "profile")
        except _Unreadable as error:
            errors = (*errors, f"its profile: {error}")
    profile, unread = profile_records.decoded(recorded, folder) if recorded else (None, ())
    kept += [
        f"a part of the record of process {pid} cannot be read: {error}"
        for error in (*errors, *broken, *unread)
    ]
    return ProcessRecord(
        pid=entry.pid,
        complete=entry.complete,
        frameworks=tuple(_use(name, each) for name, each in entry.frameworks.items()),
        notes=tuple(kept),
        trace={name: encode(trace) for name, trace in entry.trace.items()},
        imported=entry.imported,
        ended=entry.ended,
        memory=memory._replace(work=_with_exact_texts(memory.work, noted)),
        profile=profile,
        calls=entry.calls,
        readings=entry.readings,
    )


def _use(name: str, entry: FrameworkEntry) -> FrameworkUse:
    devices = tuple(used.device for used in entry.used)
    return FrameworkUse(name, entry.version, devices, entry.peak_memory_bytes)


_UNCHANGED = ("data", "python", "program", "package", "search_path", "input")
"""Parts of the noted work that are given to another process: a path may hold any byte."""


def _with_exact_texts(work: NotedWork | None, memory: dict[str, Any]) -> NotedWork | None:
    """Decoding makes a text printable; these go back to the target as they came."""
    if work is None:
        return None
    given = {name: memory["work"][name] for name in _UNCHANGED if name in memory["work"]}
    if "search_path" in given:
        given["search_path"] = tuple(given["search_path"])
    return work._replace(**given)


def _so_far(folder: str, beside: str, name: str) -> dict[str, Any]:
    """What a process wrote while it ran, for one that was killed."""
    path = os.path.join(folder, f"{beside}.{name}")
    return _object(path) if os.path.lexists(path) else {}


def _object(path: str) -> dict[str, Any]:
    """The JSON object in a file of limited size."""
    content = LocalHost().read_bytes(path, LARGEST_FILE + 1)
    if not isinstance(content, Known):
        raise _Unreadable(content.reason if isinstance(content, Unknown) else "it is gone")
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


def no_operation_ran(records: Sequence[ProcessRecord]) -> bool:
    """Whether the traces say that no framework executed an operation.

    False if a process could not report the trace of a framework, or its tracer cannot tell.
    """
    traces = [
        record.trace.get(use.name) if record.complete else None
        for record in records
        for use in record.frameworks
        if use.devices
    ]
    return all(each is not None and each.get("nothing_because") for each in traces)


def peak_memory(records: Sequence[ProcessRecord], device: DeviceUsed, rss: int) -> Observed[int]:
    """GPU memory of the process that took most, if a GPU was used; else main memory."""
    if device != "gpu":
        return Known(rss, "the largest process of the run") if rss else Absent("the run")
    peaks = [sum(use.peak_memory_bytes or 0 for use in record.frameworks) for record in records]
    best = max(peaks, default=0)
    return Known(best, "the frameworks' own counters") if best else Absent("the frameworks")
