"""What a profile of TensorFlow or JAX says about the GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from whygpu.profiling.tf_data_profile import input_waits
from whygpu.profiling.xplane import GPU, HOST, Plane, PlaneEvent

MOST_WRONG = 0.001
"""Seconds by which the two clocks may differ at the second mark."""
MARK = "whygpu mark"
"""The event that the process makes when the profiler begins, and before it ends."""
_STAGING = "H2D Dispatch"
"""The event of JAX's threads that copy an array into pinned memory before the GPU copies it."""
_STREAM = "Stream"
_COPIES = ("Memcpy", "Memset")
_DIRECTIONS: Mapping[str, Direction] = {"H2D": "to the GPU", "D2H": "from the GPU"}
_GRID = late(r"grid:(\d{1,9}),(\d{1,9}),(\d{1,9})")
_SIZE = late(r"size:(\d{1,15})")


def is_of_host(name: str) -> bool:
    """Whether an event of the host, by its name, is read here."""
    return name in (MARK, _STAGING)


def device_recording(planes: Sequence[Plane], run: ProfilerRun) -> DeviceRecording | None:
    """What the busiest GPU did; None if there was none. Raises BrokenProfile."""
    gpus = [plane for plane in planes if plane.name.startswith(GPU)]
    streams = {
        plane.name: [event for event in plane.events if event.line.startswith(_STREAM)]
        for plane in gpus
    }
    busy = {name: events for name, events in streams.items() if events}
    if not busy:
        return None
    host = [event for plane in planes if plane.name == HOST for event in plane.events]
    offset = _offset(host, run)
    name = max(busy, key=lambda each: len(busy[each]))
    events = sorted(busy[name], key=lambda event: event.begin)
    copies = [event for event in events if event.name.startswith(_COPIES)]
    kernels = [event for event in events if not event.name.startswith(_COPIES)]
    return DeviceRecording(
        run.begin,
        run.end,
        _device_number(name),
        kernels=tuple(Kernel(*e.span(offset), e.name, _blocks(e.details)) for e in kernels),
        copies=tuple(_copy(event, offset) for event in copies),
        input_waits=tuple(
            Span(wait.begin + offset, wait.end + offset) for wait in input_waits(host)
        ),
        staging=tuple(sorted(e.span(offset) for e in host if e.name == _STAGING)),
        devices=len(busy),
    )


def _offset(host: Sequence[PlaneEvent], run: ProfilerRun) -> float:
    """What has to be added to seconds of the file. Raises BrokenProfile if the marks disagree."""
    marks = sorted(event.begin / 1e12 for event in host if event.name == MARK)
    if len(marks) < 2 or not run.has_marks:
        raise BrokenProfile("the mark that relates its clock to the program's is missing")
    offset = run.marks[0][0] - marks[0]
    wrong = abs(marks[-1] + offset - run.marks[-1][0])
    if wrong > MOST_WRONG:
        raise BrokenProfile(f"its clock differs from the program's by {wrong * 1e3:.1f} ms")
    return offset


def _device_number(name: str) -> int:
    """Of a name such as "/device:GPU:0"."""
    number = name[len(GPU) :].partition(" ")[0]
    return int(number) if number.isdecimal() and len(number) < 5 else 0


def _blocks(details: str) -> int:
    found = _GRID.search(details)
    return int(found[1]) * int(found[2]) * int(found[3]) if found else 0


def _direction(name: str) -> Direction:
    for word, direction in _DIRECTIONS.items():
        if word in name:
            return direction
    return "on the GPU"


def _copy(event: PlaneEvent, offset: float) -> Copy:
    direction = _direction(event.name)
    size = _SIZE.search(event.details)
    lower = event.details.lower()
    known = direction != "on the GPU" and ("pageable" in lower or "pinned" in lower)
    return Copy(
        *event.span(offset),
        direction,
        int(size[1]) if size else 0,
        "pageable" in lower if known else None,
    )
