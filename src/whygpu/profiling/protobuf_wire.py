"""Reads messages of protocol buffers, field by field.

Only a few fields of one format are needed. The library for protocol buffers would be a dependency
for this alone, and its generated code would have to match it.
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.profiling.broken_profile import BrokenProfile

Value = bytes | int


def fields(data: Value) -> Iterator[tuple[int, Value]]:
    """The fields of a message: (number, an integer or bytes). Raises BrokenProfile."""
    data = as_bytes(data)
    whole = len(data)
    at = 0
    while at < whole:
        key = data[at]
        at += 1
        if key >= 0x80:
            key, at = _varint(data, at - 1)
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
        if at + size > whole:
            raise BrokenProfile(f"a field that is cut off at byte {at}")
        yield key >> 3, data[at : at + size]
        at += size


def first_number(data: Value) -> int:
    """The number in the field 1 of a message, where fields are in order; a 0 is not written.

    Raises BrokenProfile."""
    data = as_bytes(data)
    return _varint(data, 1)[0] if data[:1] == b"\x08" else 0


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


def as_bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise BrokenProfile("a number in place of a message")
    return value


def as_number(value: Value) -> int:
    if not isinstance(value, int):
        raise BrokenProfile("a message in place of a number")
    return value


def as_text(value: Value) -> str:
    return as_bytes(value).decode("utf-8", "replace")
