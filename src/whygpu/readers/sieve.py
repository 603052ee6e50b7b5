"""Which lines of a log can matter: one pass, constant memory, at about the speed of grep.

Gigabytes of training output consist of few kinds of lines. With everything but letters taken out,
lines of one kind become equal, so that the C code behind sets and split() does nearly all of the
work, and only a kind of line that has not been seen before is looked at.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

WORDS = tuple(
    word.encode()
    for word in ["error", "exception", "traceback", "fail", "cannot", "couldn", "unable", "cuda", "cudnn", "cublas", "nvidia", "nvrm", "nvml", "gpu", "memory", "oom", "killed", "abort", "terminate", "segmentation", "illegal", "dumped", "dlopen", "dlerror", "undefined", "dll", "driver", "found", "nosuch", "invalid", "assert", "nccl", "ptxas", "libdevice", "rocm", "directml", "incompatible", "mismatch", "support", "warning", "xla", "glibc", "requires", "version", "device", "fatal", "signal", "shared", "xid"]
)
"""A line that holds none of these, in whatever case, tells nothing about a GPU or a failure."""

HEAD_BYTES = 1 << 18
"""So much of the beginning is kept whole: versions, devices, set-up."""
TAIL_BYTES = 1 << 16
"""And so much of the end, which is where programs die."""
KEPT_BYTES = 1 << 21
"""So much of what lies between is kept, early and late lines in equal parts."""
KEPT_OF_A_KIND = 12
"""Lines that differ in numbers only; more of them add nothing."""
LINES_BEFORE = 2
LINES_AFTER = 8
"""Kept around a line that matters, because messages run over several lines."""
LONGEST_LINE = 1 << 16
"""Longer ones are looked at in parts."""
LONGEST_PIECE = 1 << 12
MOST_KINDS = 1 << 18

_NOT_LETTERS = bytes(
    byte
    for byte in range(256)
    if not (65 <= byte <= 90 or 97 <= byte <= 122 or byte == 10 or byte >= 128)
)


class Sifted(NamedTuple):
    lines: list[tuple[int, bytes]]
    """Numbers and raw text, in order. Parts of one line have the same number."""
    lines_read: int
    lines_kept: int


class Sieve:
    """Feed it the log in pieces of any size, then ask for what is left."""

    def __init__(self) -> None:
        self._carry = b""
        self._number = 1
        """Of the line that the carry begins."""
        self._head: list[tuple[int, bytes]] = []
        self._head_room = HEAD_BYTES
        self._early: list[tuple[int, bytes]] = []
        self._early_room = KEPT_BYTES // 2
        self._late: deque[tuple[int, bytes]] = deque()
        self._late_room = KEPT_BYTES // 2
        self._tail: list[tuple[int, bytes]] = []
        self._settled: set[bytes] = set()
        self._counts: dict[bytes, int] = {}
        self._before: list[tuple[int, bytes]] = []
        self._owed = 0

    def feed(self, data: bytes) -> None:
        """Take in the next piece."""
        data = self._carry + data
        if b"\0" in data:
            # Text in UTF-16, or a hole in a file; either way the zeros say nothing.
            data = data.replace(b"\0", b"")
        end = data.rfind(b"\n") + 1
        if not end:
            if len(data) < LONGEST_LINE:
                self._carry = data
                return
            end = len(data)
        elif len(data) - end > LONGEST_LINE:
            end = len(data)
        self._carry = data[end:]
        self._take(data[:end])

    def finish(self) -> Sifted:
        self._take(self._carry)
        ended = self._carry.endswith(b"\n") or not self._carry
        kept: dict[tuple[int, int], tuple[int, bytes]] = {}
        seen: dict[int, int] = {}
        for part in (self._head, self._early, list(self._late), self._last_lines()):
            # The parts can overlap, and the pieces of one line share its number.
            numbers: dict[int, int] = {}
            for number, text in part:
                numbers[number] = numbers.get(number, -1) + 1
                kept.setdefault((number, numbers[number]), (number, text))
        lines = [kept[key] for key in sorted(kept)]
        seen = dict.fromkeys((number for number, _ in lines), 1)
        read = self._number - 1 if ended else self._number
        return Sifted(lines, max(read, max(seen, default=0)), len(seen))

    def _take(self, data: bytes) -> None:
        if not data:
            return
        data = data.replace(b"\r\n", b"\n")
        if b"\r" in data:
            # What a carriage return overwrites is a piece of the same line: it keeps the number.
            data = data.replace(b"\r", b"\n\r")
        unfinished = not data.endswith(b"\n")
        body = data if unfinished else data[:-1]
        first = self._number
        self._number += data.count(b"\n") - data.count(b"\n\r")
        if self._head_room > 0:
            pieces = _numbered(body.split(b"\n"), first)
            self._fill_head(pieces)
            self._tail = pieces
            return
        shapes = body.translate(None, _NOT_LETTERS).split(b"\n")
        wanted = self._wanted(shapes)
        if wanted or self._owed:
            self._keep(_numbered(body.split(b"\n"), first), shapes, wanted)
        self._remember_tail(body, first)

    def _fill_head(self, pieces: list[tuple[int, bytes]]) -> None:
        for number, text in pieces:
            for part in _parts(text):
                if self._head_room <= 0:
                    self._keep_late(number, part)
                    continue
                self._head.append((number, part))
                self._head_room -= len(part) + 1

    def _wanted(self, shapes: list[bytes]) -> set[bytes]:
        """The kinds of lines here that matter and have not been seen often enough."""
        fresh = set(shapes) - self._settled
        if not fresh:
            return fresh
        together = b"\n".join(fresh).lower()
        if not any(word in together for word in WORDS):
            wanted: set[bytes] = set()
        else:
            present = [word for word in WORDS if word in together]
            wanted = {shape for shape in fresh if _holds(shape.lower(), present)}
        if len(self._settled) > MOST_KINDS:
            self._settled.clear()
        self._settled |= fresh - wanted
        return wanted

    def _keep(
        self, pieces: list[tuple[int, bytes]], shapes: list[bytes], wanted: set[bytes]
    ) -> None:
        until = self._owed
        kept_to = 0
        for index, shape in enumerate(shapes):
            if shape in wanted and self._counted(shape):
                for number, text in pieces[max(kept_to, index - LINES_BEFORE) : index]:
                    self._keep_one(number, text)
                until = index + 1 + LINES_AFTER
                kept_to = index
            if index < until:
                if index >= kept_to:
                    self._keep_one(*pieces[index])
                    kept_to = index + 1
        self._owed = max(0, until - len(pieces))

    def _counted(self, shape: bytes) -> bool:
        count = self._counts.get(shape, 0) + 1
        if count >= KEPT_OF_A_KIND:
            self._counts.pop(shape, None)
            self._settled.add(shape)
        else:
            self._counts[shape] = count
        return True

    def _keep_one(self, number: int, text: bytes) -> None:
        for part in _parts(text):
            if self._early_room > 0:
                self._early.append((number, part))
                self._early_room -= len(part) + 64
            else:
                self._keep_late(number, part)

    def _keep_late(self, number: int, part: bytes) -> None:
        self._late.append((number, part))
        self._late_room -= len(part) + 64
        while self._late_room < 0:
            _, gone = self._late.popleft()
            self._late_room += len(gone) + 64

    def _remember_tail(self, body: bytes, first: int) -> None:
        if len(body) < TAIL_BYTES:
            self._tail = (self._tail + _numbered(body.split(b"\n"), first))[-4096:]
            return
        cut = body.rfind(b"\n", 0, len(body) - TAIL_BYTES) + 1
        skipped = body.count(b"\n", 0, cut) - body.count(b"\n\r", 0, cut)
        self._tail = _numbered(
            body[max(cut, len(body) - LONGEST_LINE) :].split(b"\n"), first + skipped
        )

    def _last_lines(self) -> list[tuple[int, bytes]]:
        room = TAIL_BYTES
        kept: list[tuple[int, bytes]] = []
        for number, text in reversed(self._tail):
            parts = _parts(text)
            room -= len(text) + 1
            kept.extend((number, part) for part in reversed(parts))
            if room < 0:
                break
        return kept[::-1]


def _numbered(pieces: list[bytes], first: int) -> list[tuple[int, bytes]]:
    numbered: list[tuple[int, bytes]] = []
    number = first - 1
    for index, piece in enumerate(pieces):
        if index == 0 or not piece.startswith(b"\r"):
            number += 1
        numbered.append((number, piece))
    return numbered


def _parts(text: bytes) -> list[bytes]:
    """A long line in pieces, of which only those that can matter are kept."""
    if len(text) <= LONGEST_PIECE:
        return [text]
    pieces = [text[at : at + LONGEST_PIECE] for at in range(0, len(text), LONGEST_PIECE)]
    return [piece for piece in pieces if _holds(piece.lower(), WORDS)] or pieces[:1]


def _holds(text: bytes, words: tuple[bytes, ...] | list[bytes]) -> bool:
    return any(word in text for word in words)
