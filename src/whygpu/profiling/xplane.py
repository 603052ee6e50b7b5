"""Reads the profiles that TensorFlow and JAX write: XSpace messages of protocol buffers.

Only the few fields that are needed, so a reader of the wire format does: the library for protocol
buffers would be a dependency for this alone, and its generated code would have to match it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from whygpu.model.profile import FrameworkProfile, StageTime

LARGEST_FILE = 16 << 20
_HOST = "/host:CPU"
_FUNCTION = ("EagerLocalExecute: __inference", "SessionRun")
"""Names of events that last as long as a compiled function runs."""
_NEXT = "IteratorGetNextOp::DoCompute"
_STAGE = "Iterator::"

Interval = tuple[int, int]
"""Begin and end, in picoseconds."""


class BrokenProfile(ValueError):
    """The file is not what it should be; the message says where."""


class PlaneEvent(NamedTuple):
    name: str
    begin: int
    """In picoseconds, as the end."""
    end: int


class Plane(NamedTuple):
    """The events of the host or of one device."""

    name: str
    events: tuple[PlaneEvent, ...]


def read_planes(data: bytes) -> list[Plane]:
    """Raises BrokenProfile."""
    return [_plane(content) for number, content in _fields(data) if number == 1]


def summary(planes: Sequence[Plane]) -> FrameworkProfile | None:
    """What the profile says about compiled functions; None if none of them ran."""
    host = [event for plane in planes if plane.name == _HOST for event in plane.events]
    functions = _union(_spans(host, lambda name: name.startswith(_FUNCTION)))
    if not functions:
        return None
    waiting = _union(_spans(host, lambda name: name == _NEXT))
    return FrameworkProfile(
        seconds=_seconds(functions),
        input_seconds=_seconds(_intersection(functions, waiting)),
        stages=_stages(host),
    )


def _stages(events: Iterable[PlaneEvent]) -> tuple[StageTime, ...]:
    """The stages of the input pipeline, the costliest first.

    The name of a stage contains the names of those that take its elements:
    Iterator::Root::Prefetch::Map. What a stage takes itself is its time without that of its inputs.
    """
    totals: dict[str, int] = {}
    for event in events:
        if event.name.startswith(_STAGE):
            name = _without_numbers(event.name.partition("#")[0])
            totals[name] = totals.get(name, 0) + event.end - event.begin
    own = {}
    for name, total in totals.items():
        inputs = sum(totals[other] for other in totals if other.rpartition("::")[0] == name)
        own[name] = max(total - inputs, 0)
    # A stage that waits for a thread of its own has no work itself.
    ordered = sorted(own, key=lambda name: -own[name])
    return tuple(
        StageTime(name.rpartition("::")[2], own[name] / 1e12)
        for name in ordered
        if name.rpartition("::")[2] not in ("Root", "Prefetch")
    )


def _without_numbers(name: str) -> str:
    """Iterator::Root::FlatMap[0]::Generator is an input of Iterator::Root::FlatMap."""
    return "::".join(part.partition("[")[0] for part in name.split("::"))


def _spans(events: Iterable[PlaneEvent], wanted: Callable[[str], bool]) -> list[Interval]:
    return [(event.begin, event.end) for event in events if wanted(event.name)]


def _union(spans: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def _intersection(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """Both are sorted and have no overlaps of their own."""
    found = []
    mine = other = 0
    while mine < len(left) and other < len(right):
        begin = max(left[mine][0], right[other][0])
        end = min(left[mine][1], right[other][1])
        if begin < end:
            found.append((begin, end))
        if left[mine][1] < right[other][1]:
            mine += 1
        else:
            other += 1
    return found


def _seconds(spans: Iterable[Interval]) -> float:
    return sum(end - begin for begin, end in spans) / 1e12


def _plane(data: bytes | int) -> Plane:
    name = ""
    names: dict[int, str] = {}
    lines = []
    for number, content in _fields(data):
        if number == 2:
            name = _text(content)
        elif number == 3:
            lines.append(content)
        elif number == 4:
            names.update(_metadata(content))
    return Plane(name, tuple(event for line in lines for event in _line(line, names)))


def _metadata(data: bytes | int) -> Iterator[tuple[int, str]]:
    """One entry of the map from numbers to the descriptions of events."""
    key, name = 0, ""
    for number, content in _fields(data):
        if number == 1:
            key = _number(content)
        elif number == 2:
            for inner, value in _fields(_bytes(content)):
                if inner == 2:
                    name = _text(value)
    yield key, name


def _line(data: bytes | int, names: dict[int, str]) -> Iterator[PlaneEvent]:
    start = 0
    events = []
    for number, content in _fields(data):
        if number == 3:
            start = _number(content) * 1000
        elif number == 4:
            events.append(_bytes(content))
    for event in events:
        described = offset = duration = 0
        for number, content in _fields(event):
            if number == 1:
                described = _number(content)
            elif number == 2:
                offset = _number(content)
            elif number == 3:
                duration = _number(content)
        begin = start + offset
        yield PlaneEvent(names.get(described, ""), begin, begin + duration)


def _fields(data: bytes | int) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message: (number, an integer or bytes)."""
    data = _bytes(data)
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise BrokenProfile(f"a field of unknown kind {kind} at byte {at}")
        if at + size > len(data):
            raise BrokenProfile(f"a field that is cut off at byte {at}")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BrokenProfile(f"no number at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise BrokenProfile("a number in place of a message")
    return value


def _number(value: bytes | int) -> int:
    if not isinstance(value, int):
        raise BrokenProfile("a message in place of a number")
    return value


def _text(value: bytes | int) -> str:
    return _bytes(value).decode("utf-8", "replace")
