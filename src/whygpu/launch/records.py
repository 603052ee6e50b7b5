"""What the processes of a run left behind, read and joined into one report."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

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
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.policy import DeviceUsed, FrameworkUse, ProcessRecord


def read(folder: str) -> tuple[ProcessRecord, ...]:
    """Every process's record, oldest first. One that was cut short while writing has none."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return ()
    return tuple(_record(os.path.join(folder, name)) for name in names)


def _record(path: str) -> ProcessRecord:
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    return ProcessRecord(
        pid=data["pid"],
        complete=data["complete"],
        frameworks=tuple(_use(name, entry) for name, entry in data["frameworks"].items()),
        notes=tuple(data["notes"]),
        trace=data["trace"],
        imported=data.get("imported"),
        ended=data.get("ended"),
        memory=_memory(data.get("memory") or _begun(os.path.dirname(path), data["pid"])),
    )


def _begun(folder: str, pid: int) -> dict[str, Any]:
    """What a process noted on its way that ended without a word."""
    try:
        with open(os.path.join(folder, f"{pid}.work"), encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return {}
    return found


def _memory(entry: dict[str, Any]) -> ProcessMemory:
    parts: dict[str, Any] = {
        **entry,
        "curves": tuple(_curve(curve) for curve in entry.get("curves", ())),
        "allocators": tuple(Allocator(**each) for each in entry.get("allocators", ())),
        "rounds": tuple(Rounds(**each) for each in entry.get("rounds", ())),
        "kept": tuple(Kept(**each) for each in entry.get("kept", ())),
        "limit": ProcessLimit(**entry["limit"]) if entry.get("limit") else None,
        "work": _work(entry["work"]) if entry.get("work") else None,
        "imported": Footprint(**entry["imported"]) if entry.get("imported") else None,
    }
    return ProcessMemory(**parts)


def _work(entry: dict[str, Any]) -> NotedWork:
    return NotedWork(**{**entry, "search_path": tuple(entry.get("search_path", ()))})


def _curve(entry: dict[str, Any]) -> Curve:
    return Curve(**{**entry, "points": tuple(Point(*point) for point in entry["points"])})


def _use(name: str, entry: dict[str, Any]) -> FrameworkUse:
    devices = tuple(device["device"] for device in entry.get("used", ()))
    return FrameworkUse(name, entry["version"], devices, entry.get("peak_memory_bytes"))


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
