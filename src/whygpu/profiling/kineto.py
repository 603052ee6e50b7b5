"""Reads the file that PyTorch's profiler writes: events as JSON, in microseconds.

Only kernels, copies and calls of CUDA are used. Its clock is related to that of the sampled stacks
by a call of CUDA that the process has made for this when the profiler began.

The file may have 100 MB, most of it what is not needed. So events are read one by one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from whygpu.model.device_recording import (
    Copy,
    DeviceRecording,
    Direction,
    Kernel,
    ProfilerRun,
    Span,
)
from whygpu.model.lazy_regex import late
from whygpu.profiling.broken_profile import BrokenProfile
from whygpu.profiling.spans import joined

LARGEST_FILE = 256 << 20
LATEST = 1e16
"""Microseconds; it also refuses what is no number."""
MOST_WRONG = 0.001
"""Seconds by which the two clocks may differ at the second mark."""
_KERNEL = "kernel"
_COPIES = ("gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")
_WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
_MARK = "cudaDeviceSynchronize"
_DIRECTIONS: Mapping[str, Direction] = {"HtoD": "to the GPU", "DtoH": "from the GPU"}
_EVENTS = '"traceEvents":'
_BETWEEN = late(r"[\s,]*")


class _Event(NamedTuple):
    """What is needed of an event."""

    category: str
    name: str
    begin: float
    """In seconds on the profiler's clock."""
    seconds: float
    device: int
    blocks: int
    size: int

    def span(self, offset: float) -> Span:
        begin = self.begin + offset
        return Span(begin, begin + self.seconds)


def read_kineto(data: bytes, run: ProfilerRun) -> DeviceRecording:
    """Raises BrokenProfile."""
    text = data.decode("utf-8", "replace")
    start = text.find(_EVENTS)
    if start < 0:
        raise BrokenProfile("not a trace of PyTorch's profiler: it has no events")
    try:
        header = json.loads(text[:start] + f"{_EVENTS} []}}")
        events = [event for found in _listed(text, start) if (event := _event(found)) is not None]
    except (ValueError, IndexError, RecursionError) as error:
        raise BrokenProfile(f"not a trace of PyTorch's profiler: {error}") from error
    return _recording(events, header, _offset(events, run), _shortened(run, header))


def _shortened(run: ProfilerRun, header: Mapping[str, Any]) -> ProfilerRun:
    """If there were too many events, only those of its first part were written."""
    cut = header.get("cutAfterSeconds")
    if not _is_time(cut) or not run.has_marks:
        return run
    return run._replace(end=min(run.end, run.marks[0][0] + cut))


def _listed(text: str, start: int) -> Iterator[Any]:
    """The members of the list that follows, one after the other."""
    decoder = json.JSONDecoder()
    at = text.index("[", start) + 1
    while True:
        at = _end_of_gap(text, at)
        if text[at] == "]":
            return
        found, at = decoder.raw_decode(text, at)
        yield found


def _end_of_gap(text: str, at: int) -> int:
    gap = _BETWEEN.match(text, at)
    return gap.end() if gap is not None else at


def _event(found: Any) -> _Event | None:
    """None for what is not needed."""
    if not isinstance(found, dict) or found.get("ph") != "X":
        return None
    category, name, details = found.get("cat"), found.get("name"), found.get("args", {})
    if category not in (_KERNEL, *_COPIES, *_CALLS) or not isinstance(name, str):
        return None
    begin, duration = found.get("ts"), found.get("dur")
    if not _is_time(begin) or not _is_time(duration) or not isinstance(details, dict):
        return None
    return _Event(
        str(category),
        name,
        begin / 1e6,
        max(duration, 0) / 1e6,
        _number(details.get("device")),
        _blocks(details.get("grid")),
        _number(details.get("bytes")),
    )


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and abs(value) < LATEST


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else 0


def _blocks(grid: Any) -> int:
    if not isinstance(grid, list) or len(grid) != 3:
        return 0
    return _number(grid[0]) * _number(grid[1]) * _number(grid[2])


def _offset(events: Sequence[_Event], run: ProfilerRun) -> float:
    """What has to be added to seconds of the file. Raises BrokenProfile if the marks disagree."""
    marks = [event.begin for event in events if event.name == _MARK]
    if not marks or not run.has_marks:
        raise BrokenProfile("the mark that relates its clock to the program's is missing")
    offset = run.marks[0][0] - min(marks)
    nearest = min(abs(mark + offset - run.marks[-1][0]) for mark in marks)
    if nearest > MOST_WRONG:
        raise BrokenProfile(f"its clock differs from the program's by {nearest * 1e3:.1f} ms")
    return offset


def _recording(
    events: Sequence[_Event], header: Mapping[str, Any], offset: float, run: ProfilerRun
) -> DeviceRecording:
    devices = Counter(event.device for event in events if event.category == _KERNEL)
    device = devices.most_common(1)[0][0] if devices else 0
    here = [event for event in events if event.device == device]
    calls = [event for event in events if event.category in _CALLS]
    return DeviceRecording(
        run.begin,
        run.end,
        device,
        kernels=tuple(
            sorted(
                Kernel(*each.span(offset), each.name, each.blocks)
                for each in here
                if each.category == _KERNEL
            )
        ),
        copies=tuple(sorted(_copy(each, offset) for each in here if each.category in _COPIES)),
        waits=tuple(joined(each.span(offset) for each in calls if each.name in _WAITS)),
        calls=tuple(joined(each.span(offset) for each in calls)),
        multiprocessors=_multiprocessors(header.get("deviceProperties"), device),
        devices=max(len(devices), 1),
    )


def _copy(event: _Event, offset: float) -> Copy:
    """Its name is such as "Memcpy HtoD (Pageable -> Device)"."""
    name = event.name
    direction = _direction(name)
    known = direction != "on the GPU" and ("Pageable" in name or "Pinned" in name)
    return Copy(*event.span(offset), direction, event.size, "Pageable" in name if known else None)


def _direction(name: str) -> Direction:
    for word, direction in _DIRECTIONS.items():
        if word in name:
            return direction
    return "on the GPU"


def _multiprocessors(properties: Any, device: int) -> int:
    for each in properties if isinstance(properties, list) else ():
        if isinstance(each, dict) and each.get("id") == device:
            return _number(each.get("numSms"))
    return 0
