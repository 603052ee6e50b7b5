"""Selects the lines of a log that can matter: one pass, constant memory, about as fast as grep.

Gigabytes of training output consist of few kinds of lines. If everything except letters is removed,
lines of one kind become equal. Then the C code of sets and split() does nearly all of the work, and
only new kinds of lines are examined.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

WORDS = (
    *(b"error", b"exception", b"traceback", b"fail", b"cannot", b"couldn", b"unable", b"invalid"),
    *(b"found", b"nosuch", b"undefined", b"missing", b"mismatch", b"incompatible", b"support"),
    *(b"killed", b"abort", b"terminate", b"segmentation", b"illegal", b"dumped", b"signal"),
    *(b"died", b"crash", b"exit", b"denied", b"fatal", b"assert", b"warning", b"requires"),
    *(b"version", b"shared", b"memory", b"oom", b"vram", b"rocm", b"directml"),
    *(b"cuda", b"cudnn", b"cublas", b"nvidia", b"nvrm", b"nvml", b"nccl", b"gpu", b"driver"),
    *(b"device", b"dlopen", b"dlerror", b"dll", b"glibc", b"ptxas", b"libdevice", b"xla", b"xid"),
    *(b"lossnan", b"lossinf", b"oncpu", b"onthecpu", b"usingcpu", b"usingthecpu"),
)
"""A line without any of these words, in any case, says nothing about a GPU or a failure."""

HEAD_BYTES = 1 << 15
"""How much of the beginning is kept completely: versions, devices, set-up."""
TAIL_BYTES = 1 << 14
"""How much of the end is kept, where most programs fail."""
KEPT_BYTES = 1 << 18
"""How much is kept in between, half of it early lines and half late ones."""
KEPT_OF_A_KIND = 12
"""How many lines of one kind (which differ only in numbers) are kept."""
LINES_BEFORE = 2
LINES_AFTER = 8
"""Kept around a line that matters, because messages run over several lines."""
TRACEBACK_LINES = 100
"""Kept after the first line of a traceback, whose last line is the one that matters."""
LONGEST_LINE = 1 << 16
"""A longer line is split into several pieces with the same line number."""
LONGEST_PART = 1 << 14
MOST_PARTS = 16
"""How many pieces of a very long line are kept, if they can matter."""
BLOCK_BYTES = 1 << 16
"""The size of a block: data that fit into a processor's cache are handled twice as fast."""
KINDS_BYTES = 1 << 23
"""How much memory the known kinds may use; above that, they are forgotten and learnt again."""

_COST_OF_A_LINE = 64
_NOT_LETTERS = bytes(
    byte for byte in range(256) if not (65 <= byte <= 90 or 97 <= byte <= 122 or byte == 10)
)
_TRACEBACK = b"tracebackmostrecentcalllast"
_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Piece(NamedTuple):
    """A line, a part of a long line, or text that a carriage return later overwrote."""

    place: int
    """Among all pieces of the log, so that none is kept twice."""
    number: int
    """Of its line."""
    text: bytes


class Sifted(NamedTuple):
    lines: list[tuple[int, bytes]]
    """Numbers and raw text, in order. Parts of one line have the same number."""
    lines_read: int
    lines_kept: int


class Sieve:
    """Takes the log in pieces of any size, and then returns the selected lines."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None
        self._started = False
        self._pending = bytearray()
        """Small pieces, collected until they fill a block."""
        self._carry = b""
        """The unfinished line at the end of the last block."""
        self._number = 1
        """The number of the line that the next piece begins or continues."""
        self._place = 0
        """The position of the next piece."""
        self._inside = False
        """Whether the next piece continues a line that was read in part."""
        self._head: list[Piece] = []
        self._head_room = HEAD_BYTES
        self._early: list[Piece] = []
        self._early_room = KEPT_BYTES // 2
        self._late: deque[Piece] = deque()
        self._late_room = KEPT_BYTES // 2
        self._recent: deque[_Block] = deque()
        self._recent_bytes = 0
        self._settled: set[bytes] = set()
        self._counts: dict[bytes, int] = {}
        self._kinds_bytes = 0
        self._owed = 0
        """How many of the next lines must still be kept."""

    def feed(self, data: bytes) -> None:
        """Read the next piece."""
        data = self._in_utf8(data)
        if self._pending or len(data) < BLOCK_BYTES:
            self._pending += data
            if len(self._pending) < BLOCK_BYTES:
                return
            data = bytes(self._pending)
            self._pending.clear()
        for start in range(0, len(data), BLOCK_BYTES):
            self._feed_block(data[start : start + BLOCK_BYTES])

    def _feed_block(self, data: bytes) -> None:
        if b"\0" in data:
            # UTF-16 appended to another encoding, or a hole in a file: ignore the zeros.
            data = data.translate(None, b"\0")
        if self._carry:
            data = self._carry + data
        end = data.rfind(b"\n") + 1
        if len(data) - end > LONGEST_LINE:
            # Split between two words, because half a word is not recognised.
            end = data.rfind(b" ", len(data) - LONGEST_PART) + 1 or len(data)
        self._carry = data[end:]
        if end:
            self._take(data[:end])

    def finish(self) -> Sifted:
        self._feed_block(bytes(self._pending))
        if self._carry:
            self._take(self._carry)
        kept = {
            piece.place: piece
            for part in (self._head, self._early, self._late, self._last_pieces())
            for piece in part
        }
        pieces = [kept[place] for place in sorted(kept)]
        return Sifted(
            lines=[(piece.number, piece.text) for piece in pieces],
            lines_read=self._number if self._inside else self._number - 1,
            lines_kept=len({piece.number for piece in pieces}),
        )

    def _in_utf8(self, data: bytes) -> bytes:
        if not self._started and data:
            self._started = True
            if data.startswith(_BYTE_ORDER_MARKS):
                self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
            data = data.removeprefix(codecs.BOM_UTF8)
        if self._decoder is None:
            return data
        return self._decoder.decode(data).encode("utf-8", "replace")

    def _take(self, data: bytes) -> None:
        """A block of lines; only the last of them may be unfinished."""
        overwritten = 0
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
            # Text that a carriage return overwrites is a piece of the same line, with its number.
            data = data.replace(b"\r", b"\n\r")
            overwritten = data.count(b"\n\r")
        self._inside = not data.endswith(b"\n")
        block = _Block(data if self._inside else data[:-1], self._number, self._place)
        if self._head_room > 0:
            pieces = block.texts()
            count = len(pieces)
            self._fill_head(block, pieces)
        else:
            shapes = block.body.translate(None, _NOT_LETTERS).split(b"\n")
            count = len(shapes)
            wanted = self._wanted(shapes)
            if wanted or self._owed:
                self._keep(block, shapes, wanted)
        self._place += count
        self._number += count - overwritten - self._inside
        self._remember(block)

    def _fill_head(self, block: _Block, texts: list[bytes]) -> None:
        for index, text in enumerate(texts):
            self._head_room -= len(text) + 1
            if self._head_room < 0 and self._head:
                shapes = [each.translate(None, _NOT_LETTERS) for each in texts[index:]]
                self._keep(block, shapes, self._wanted(shapes), skip=index)
                return
            self._head.append(block.piece(index))

    def _wanted(self, shapes: list[bytes]) -> set[bytes]:
        """The kinds of lines here that matter and have not been seen often enough."""
        fresh = set(shapes) - self._settled
        if not fresh:
            return fresh
        together = b"\n".join(fresh).lower()
        present = [word for word in WORDS if word in together]
        wanted = {shape for shape in fresh if present and _holds(shape.lower(), present)}
        self._kinds_bytes += len(together) + _COST_OF_A_LINE * len(fresh)
        if self._kinds_bytes > KINDS_BYTES:
            self._settled.clear()
            self._counts.clear()
            self._kinds_bytes = 0
        self._settled |= fresh - wanted
        return wanted

    def _keep(
        self, block: _Block, shapes: list[bytes], wanted: set[bytes], *, skip: int = 0
    ) -> None:
        """The pieces that matter, and those around them. The shapes begin after `skip` pieces."""
        until = self._owed
        kept_to = 0
        for index, shape in enumerate(shapes):
            if shape in wanted and self._is_new_enough(shape):
                after = TRACEBACK_LINES if _TRACEBACK in shape.lower() else LINES_AFTER
                until = max(until, index + 1 + after)
                if index < LINES_BEFORE and kept_to == skip == 0:
                    self._keep_last(LINES_BEFORE - index)
                for before in range(max(kept_to, index - LINES_BEFORE), index):
                    self._keep_one(block.piece(skip + before))
                kept_to = index
            if kept_to <= index < until:
                self._keep_one(block.piece(skip + index))
                kept_to = index + 1
        self._owed = max(0, until - len(shapes))

    def _keep_last(self, count: int) -> None:
        """The last pieces of the block before."""
        if self._recent:
            block = self._recent[-1]
            for index in range(len(block.texts()))[-count:]:
                self._keep_one(block.piece(index))

    def _is_new_enough(self, shape: bytes) -> bool:
        if shape in self._settled:
            return False
        count = self._counts.get(shape, 0) + 1
        self._counts[shape] = count
        if count >= KEPT_OF_A_KIND:
            del self._counts[shape]
            self._settled.add(shape)
        return True

    def _keep_one(self, piece: Piece) -> None:
        cost = len(piece.text) + _COST_OF_A_LINE
        if self._early_room > 0:
            self._early.append(piece)
            self._early_room -= cost
            return
        self._late.append(piece)
        self._late_room -= cost
        while self._late_room < 0:
            self._late_room += len(self._late.popleft().text) + _COST_OF_A_LINE

    def _remember(self, block: _Block) -> None:
        """Remember the end of what has been read so far, in case the log ends here."""
        self._recent.append(block)
        self._recent_bytes += block.cost
        while self._recent_bytes - self._recent[0].cost >= TAIL_BYTES:
            self._recent_bytes -= self._recent.popleft().cost

    def _last_pieces(self) -> Iterator[Piece]:
        room = TAIL_BYTES
        for block in reversed(self._recent):
            for index in reversed(range(len(block.texts()))):
                if room <= 0:
                    return
                piece = block.piece(index)
                room -= len(piece.text) + 1
                yield piece


class _Block:
    """Some lines that were read together. They are split only if needed."""

    def __init__(self, body: bytes, number: int, place: int) -> None:
        self.body = body
        self.cost = len(body) + _COST_OF_A_LINE
        self._number = number
        self._place = place
        self._texts: list[bytes] = []
        self._numbers: Sequence[int] = ()

    def texts(self) -> list[bytes]:
        if not self._texts:
            self._texts = self.body.split(b"\n")
        return self._texts

    def piece(self, index: int) -> Piece:
        texts = self.texts()
        if not self._numbers:
            if b"\r" in self.body:
                steps = (not text.startswith(b"\r") for text in texts[1:])
                self._numbers = list(accumulate(steps, initial=self._number))
            else:
                self._numbers = range(self._number, self._number + len(texts))
        return Piece(self._place + index, self._numbers[index], _shortened(texts[index]))


def _shortened(text: bytes) -> bytes:
    """A long line without the parts that cannot matter."""
    if len(text) <= LONGEST_PART:
        return text
    parts = [text[at : at + LONGEST_PART] for at in range(0, len(text), LONGEST_PART)]
    chosen = [part for part in parts if _holds(part.lower(), WORDS)] or parts[:1]
    if len(chosen) > MOST_PARTS:
        half = MOST_PARTS // 2
        chosen = [*chosen[:half], *chosen[-half:]]
    return b"".join(chosen)


def _holds(text: bytes, words: tuple[bytes, ...] | list[bytes]) -> bool:
    return any(word in text for word in words)
