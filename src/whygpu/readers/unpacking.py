"""Unpacks compressed logs and snapshots while they are read, up to a limit.

A format is recognised by its first bytes, not by a file's name, because files come through pipes
and are renamed. If an archive is damaged or too large, its first part is read and the rest is
reported.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol

from whygpu.errors import UsageError
from whygpu.model.units import size_text
from whygpu.readers import limits

_PEEK = 512
"""Bytes that are enough to recognise every format; a tar archive needs its first block."""
_PIECE = 1 << 18
_ZSTD_INPUT = 1 << 10
"""Bytes per call for a decompressor without a limit on its output. They become 32 MB at most."""
_TAR = slice(257, 262)


_ENDINGS = (".gz", ".bz2", ".xz", ".zst")


def without_packing(name: str) -> str:
    """The name of a file without the ending that a tool for compression gave it."""
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


class Wanted(NamedTuple):
    """What the bytes should be: the limit, and words for messages about something else."""

    noun: str
    most: int
    """Unpacked bytes that are read."""
    remedy: str
    """How to get one."""
    unpacked_to: str
    """What to do with the output of a tool that unpacks the file."""


LOG = Wanted(
    "log",
    limits.UNPACKED_LOG,
    "save what the program prints, with its errors, and explain that: PROGRAM > train.log 2>&1",
    "| whygpu explain",
)
SNAPSHOT = Wanted(
    "snapshot",
    limits.SNAPSHOT,
    "`whygpu snapshot -o FILE` writes one",
    "> machine.json",
)


class Unpacked:
    """The bytes of a file. Iterate once; then `unread` says what was not read, and why."""

    def __init__(self, pieces: Iterable[bytes], name: str = "", wanted: Wanted = LOG) -> None:
        self._pieces = iter(pieces)
        self._name = name
        self._wanted = wanted
        self.unread = ""

    def __iter__(self) -> Iterator[bytes]:
        start, pieces = _peeked(self._pieces)
        self._refuse_others(start)
        form = next((each for each in _FORMATS if start.startswith(each.marks)), None)
        if form is None:
            yield from pieces
            return
        unpacked = self._within_limit(self._unpacked(form, pieces))
        start, unpacked = _peeked(unpacked)
        self._refuse_others(start)
        yield from unpacked

    def _within_limit(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        left = self._wanted.most
        for piece in pieces:
            yield piece[:left]
            left -= len(piece)
            if left < 0:
                most = size_text(self._wanted.most)
                self.unread = f"only the first {most} of the unpacked {self._wanted.noun} were read"
                return

    def _unpacked(self, form: _Format, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """All members of an archive, one after the other, as its command-line tool writes them."""
        decoder = self._decoder(form)
        begun = False
        held = b""
        for piece in pieces:
            data, held = held + piece, b""
            while data:
                if not begun and not data.startswith(form.marks):
                    if any(mark.startswith(data) for mark in form.marks):
                        held = data
                        break
                    if data.strip(b"\0"):
                        self.unread = f"the data after its {form.name} data were not read"
                    return
                begun = True
                try:
                    yield from decoder.feed(data)
                except Exception as error:
                    # Each library has its own exceptions; none of them is a bug of whygpu.
                    self.unread = f"the rest cannot be unpacked ({form.name}: {error})"
                    return
                data = b""
                if decoder.ended:
                    data, decoder, begun = decoder.behind, self._decoder(form), False
        if begun or held:
            self.unread = f"the {form.name} data are truncated: the end is missing"

    def _decoder(self, form: _Format) -> _Decoder:
        decoder = form.decoder()
        if decoder is not None:
            return decoder
        raise UsageError(
            f"{self._subject()} is compressed with {form.name}, which this Python cannot read; "
            f"unpack it first: {self._piped(form.tool)}"
        )

    def _refuse_others(self, start: bytes) -> None:
        self._refuse_own_json(start)
        for name, marks in _BINARIES:
            if start.startswith(marks):
                raise UsageError(
                    f"{self._subject()} is {name}, not a {self._wanted.noun}; {self._wanted.remedy}"
                )
        kinds = [kind for kind in _ARCHIVES if start.startswith(kind.marks)]
        if start[_TAR] == b"ustar":
            kinds.append(_TAR_ARCHIVE)
        if kinds:
            raise UsageError(
                f"{self._subject()} is {kinds[0].name}, not a {self._wanted.noun}; take the "
                f"{self._wanted.noun} out of it: {self._piped(kinds[0].tool)}"
            )

    def _refuse_own_json(self, start: bytes) -> None:
        """The facts in a snapshot, and the words of an answer, would read like a bad log."""
        own = _OWN_JSON.match(start) if self._wanted is LOG else None
        if own is None:
            return
        if own["first"]:
            raise UsageError(
                f"{self._subject()} is a snapshot of a machine and no log; to diagnose the "
                f"machine: whygpu check --snapshot {shlex.quote(self._name or '-')}"
            )
        raise UsageError(
            f"{self._subject()} is an answer of whygpu and no log; explain the log that it is about"
        )

    def _subject(self) -> str:
        return self._name or "standard input"

    def _piped(self, tool: str) -> str:
        """Without the file's name, because removing private data from it could break the quotes."""
        return f"{tool} FILE {self._wanted.unpacked_to}"


def _peeked(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and all of the pieces."""
    held: list[bytes] = []
    while sum(map(len, held)) < _PEEK and (piece := next(pieces, None)) is not None:
        held.append(piece)
    start = b"".join(held)
    return start[:_PEEK], chain([start] if start else [], pieces)


class _Decoder(Protocol):
    """Unpacks one member. Its output comes in pieces of limited size."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    @property
    def ended(self) -> bool: ...

    @property
    def behind(self) -> bytes:
        """Input after the end of the member."""


class _Zlib:
    def __init__(self) -> None:
        import zlib

        self._object = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._object.eof:
            piece = self._object.decompress(data, _PIECE)
            data = self._object.unconsumed_tail
            if piece:
                yield piece
            if not data and len(piece) < _PIECE:
                return

    @property
    def ended(self) -> bool:
        return self._object.eof

    @property
    def behind(self) -> bytes:
        return self._object.unused_data


class _LimitedObject(Protocol):
    """The decompressors of bz2, lzma and compression.zstd."""

    def decompress(self, data: bytes, max_length: int) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


class _Limited:
    def __init__(self, decompressor: _LimitedObject) -> None:
        self._object = decompressor

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._object.eof:
            piece = self._object.decompress(data, _PIECE)
            data = b""
            if piece:
                yield piece
            if self._object.needs_input:
                return

    @property
    def ended(self) -> bool:
        return self._object.eof

    @property
    def behind(self) -> bytes:
        return self._object.unused_data


class _Zstandard:
    """The package zstandard, for Pythons without zstd."""

    def __init__(self) -> None:
        import zstandard  # type: ignore[import-not-found, unused-ignore]

        window = limits.UNPACKING_MEMORY
        self._object = zstandard.ZstdDecompressor(max_window_size=window).decompressobj()
        self._after = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        for place in range(0, len(data), _ZSTD_INPUT):
            yield self._object.decompress(data[place : place + _ZSTD_INPUT])
            if self._object.eof:
                self._after = self._object.unused_data + data[place + _ZSTD_INPUT :]
                return

    @property
    def ended(self) -> bool:
        return bool(self._object.eof)

    @property
    def behind(self) -> bytes:
        return self._after


def _bzip2() -> _Decoder | None:
    try:
        import bz2
    except ImportError:
        # A Python that was built without the library.
        return None
    return _Limited(bz2.BZ2Decompressor())


def _gzip() -> _Decoder | None:
    try:
        return _Zlib()
    except ImportError:
        return None


def _xz() -> _Decoder | None:
    try:
        import lzma
    except ImportError:
        return None
    return _Limited(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.UNPACKING_MEMORY))


def _zstd() -> _Decoder | None:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            return _Zstandard()
        except ImportError:
            return None
    longest = limits.UNPACKING_MEMORY.bit_length() - 1
    options = {zstd.DecompressionParameter.window_log_max: longest}
    return _Limited(zstd.ZstdDecompressor(options=options))


class _Format(NamedTuple):
    name: str
    marks: tuple[bytes, ...]
    """Its first bytes."""
    tool: str
    """The command that unpacks it to standard output."""
    decoder: Callable[[], _Decoder | None] = lambda: None


_BZIP2_MARKS = tuple(
    b"BZh%d%b" % (level, block)
    for level in range(1, 10)
    # The first block of data, or the end of an empty file.
    for block in (b"1AY&SY", b"\x17rE8P\x90")
)
_FORMATS = (
    _Format("gzip", (b"\x1f\x8b\x08",), "zcat", _gzip),
    _Format("bzip2", _BZIP2_MARKS, "bzcat", _bzip2),
    _Format("xz", (b"\xfd7zXZ\0",), "xzcat", _xz),
    _Format("zstd", (b"\x28\xb5\x2f\xfd",), "zstdcat", _zstd),
    _Format("lz4", (b"\x04\x22\x4d\x18",), "lz4cat"),
    _Format("lzip", (b"LZIP\1",), "lzip -dc"),
    _Format("compress", (b"\x1f\x9d",), "zcat"),
)
_ARCHIVES = (
    _Format("a zip archive", (b"PK\3\4", b"PK\5\6", b"PK\7\x08"), "unzip -p"),
    _Format("a 7z archive", (b"7z\xbc\xaf\x27\x1c",), "7z x -so"),
    _Format("a RAR archive", (b"Rar!\x1a\x07",), "unrar p -inul"),
)
_BINARIES = (
    ("a program or library", (b"\x7fELF", b"MZ\x90\0", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")),
    ("an HDF5 file", (b"\x89HDF\r\n\x1a\n",)),
    ("a PNG image", (b"\x89PNG\r\n\x1a\n",)),
    ("a JPEG image", (b"\xff\xd8\xff",)),
    ("a PDF document", (b"%PDF-",)),
    ("a database of SQLite", (b"SQLite format 3\0",)),
    ("a NumPy array", (b"\x93NUMPY",)),
)
"""Kinds of files with their first bytes, in which there is no log."""
_OWN_JSON = re.compile(
    rb"\s{0,8}\{\s{0,8}\"schema\": ?\d{1,4},\s{0,8}"
    rb"(?:\"(?P<first>whygpu|verdict)\": ?\"|\"name\": ?\"[^\"\n]{0,300}\",\s{0,8}\"verdict\""
    rb"|\"findings\": ?\[)"
)
"""What whygpu writes as JSON begins with the number of its schema. A snapshot, and the answer of
`check`, which has one in it, have `first`."""
_TAR_ARCHIVE = _Format("a tar archive", (), "tar -xOf")
