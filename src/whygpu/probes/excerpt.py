"""Keeps the beginning and the end of a stream of any size as clean lines, in bounded memory."""

from __future__ import annotations

import re

from whygpu.model.outside_text import without_sequences

KEPT_BYTES = 32 * 1024
"""Of the beginning, and again of the end."""

_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Excerpt:
    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = KEPT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = len(self._tail) - KEPT_BYTES
        if excess > 0:
            del self._tail[:excess]
            self._left_out += excess

    @property
    def cut(self) -> bool:
        return self._left_out > 0

    def lines(self) -> tuple[str, ...]:
        """What a reader would see in the end: no colours, no overwritten progress bars."""
        if not self.cut:
            return _clean(bytes(self._head + self._tail))
        # Half a line can have another meaning (libcusolver.so.1 for .so.11), so it is dropped.
        head = self._head[: self._head.rfind(b"\n") + 1] or self._head
        tail = self._tail[self._tail.find(b"\n") + 1 :] or self._tail
        dropped = len(self._head) - len(head) + len(self._tail) - len(tail)
        marker = f"[{self._left_out + dropped} bytes left out]"
        return (*_clean(bytes(head)), marker, *_clean(bytes(tail)))


def _clean(data: bytes) -> tuple[str, ...]:
    text = without_sequences(data.decode("utf-8", "replace"))
    lines = (_as_overwritten(line) for line in text.split("\n"))
    return tuple(line for line in lines if line.strip())


def _as_overwritten(line: str) -> str:
    """The last thing a carriage return left visible."""
    shown = [part for part in line.split("\r") if part.strip()]
    return _CONTROL_CHARACTER.sub("", shown[-1]).rstrip() if shown else ""
