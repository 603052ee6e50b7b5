"""Reads the profiles that TensorFlow and JAX write: XSpace messages, with planes of events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from whygpu.model.device_recording import Span
from whygpu.profiling.protobuf_wire import (
    Value,
    as_bytes,
    as_number,
    as_text,
    fields,
    first_number,
)

LARGEST_FILE = 64 << 20
HOST = "/host:CPU"
GPU = "/device:GPU:"
_DETAILS = ("kernel_details", "memcpy_details", "memset_details")


class PlaneEvent(NamedTuple):
    name: str
    begin: int
    """In picoseconds, as the end."""
    end: int
    line: str = ""
    """The name of its track; for a GPU, of a stream."""
    details: str = ""
    """For a GPU: sizes of kernels and copies."""

    def span(self, offset: float = 0.0) -> Span:
        """Its time in seconds, on a clock that differs by the offset."""
        return Span(self.begin / 1e12 + offset, self.end / 1e12 + offset)


class Plane(NamedTuple):
    """The events of the host or of one device."""

    name: str
    events: tuple[PlaneEvent, ...]


def read_planes(data: bytes, is_needed: Callable[[str], bool] = lambda name: True) -> list[Plane]:
    """All events of GPUs, and those of the host whose names are needed. Raises BrokenProfile.

    Most events are the host's, and none of them is looked at in vain.
    """
    return [_plane(content, is_needed) for number, content in fields(data) if number == 1]


def _plane(data: Value, is_needed: Callable[[str], bool]) -> Plane:
    name = ""
    names: dict[int, str] = {}
    stats: dict[int, str] = {}
    lines = []
    for number, content in fields(data):
        if number == 2:
            name = as_text(content)
        elif number == 3:
            lines.append(content)
        elif number == 4:
            names.update(_metadata(content))
        elif number == 5:
            stats.update(_metadata(content))
    details: Collection[int] = ()
    if name.startswith(GPU):
        details = {key for key, stat in stats.items() if stat in _DETAILS}
    else:
        names = {key: text for key, text in names.items() if is_needed(text)}
    events = (event for line in lines for event in _line(line, names, stats, details))
    return Plane(name, tuple(events))


def _metadata(data: Value) -> Iterator[tuple[int, str]]:
    """One entry of the map from numbers to the descriptions of events."""
    key, name = 0, ""
    for number, content in fields(data):
        if number == 1:
            key = as_number(content)
        elif number == 2:
            for inner, value in fields(as_bytes(content)):
                if inner == 2:
                    name = as_text(value)
    yield key, name


def _line(
    data: Value, names: Mapping[int, str], texts: Mapping[int, str], details: Collection[int]
) -> Iterator[PlaneEvent]:
    start = 0
    title = ""
    events = []
    for number, content in fields(data):
        if number == 2:
            title = as_text(content)
        elif number == 3:
            start = as_number(content) * 1000
        elif number == 4:
            events.append(content)
    for event in events:
        # Most events are not needed, and their first field shows it.
        if first_number(event) in names:
            found = _event(event, names, texts, details)
            yield found._replace(begin=start + found.begin, end=start + found.end, line=title)


def _event(
    data: Value, names: Mapping[int, str], texts: Mapping[int, str], details: Collection[int]
) -> PlaneEvent:
    name, text = names.get(first_number(data), ""), ""
    offset = duration = 0
    for number, content in fields(data):
        if number == 2:
            offset = as_number(content)
        elif number == 3:
            duration = as_number(content)
        elif number == 4 and details:
            text = text or _stat(content, texts, details)
    return PlaneEvent(name, offset, offset + duration, details=text)


def _stat(data: Value, texts: Mapping[int, str], wanted: Collection[int]) -> str:
    """The text of a stat, if it is one of those that are wanted."""
    key, text = 0, ""
    for number, content in fields(data):
        if number == 1:
            key = as_number(content)
            if key not in wanted:
                return ""
        elif number == 5:
            text = as_text(content)
        elif number == 7:
            # The number of a name that holds the text.
            text = texts.get(as_number(content), "")
    return text if key in wanted else ""
