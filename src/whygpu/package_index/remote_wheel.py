"""A wheel on a web server as a zip archive; only the parts that are read are fetched."""

from __future__ import annotations

import errno
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import Parser

from whygpu.package_index.web import Unreadable, Web

_TAIL = 1 << 17
_FIRST_STEP, _LONGEST_STEP = 1 << 15, 1 << 22
_CHUNK = 1 << 20
_LARGEST_METADATA = 1 << 22
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)
"""What zipfile raises if an archive is damaged, encrypted, or compressed in an unknown way."""


class RemoteFile(io.BufferedIOBase):
    """A file behind range requests. Sequential reads request larger and larger pieces."""

    def __init__(self, web: Web, url: str) -> None:
        self._web = web
        self._url = url
        self._tail, self._size = web.tail(url, _TAIL)
        self._place = 0
        self._window, self._window_start = b"", 0
        self._step = _FIRST_STEP

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "a place before the beginning of the file")
        self._place = start + offset
        return self._place

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(self._size - self._place, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        content = self._part(self._place, self._place + wanted)
        self._place += len(content)
        return content

    def _part(self, start: int, end: int) -> bytes:
        tail_start = self._size - len(self._tail)
        if start >= tail_start:
            return self._tail[start - tail_start : end - tail_start]
        window_end = self._window_start + len(self._window)
        if not self._window_start <= start <= end <= window_end:
            reads_on = self._window_start <= start <= window_end
            self._step = min(2 * self._step, _LONGEST_STEP) if reads_on else _FIRST_STEP
            fetch_from = window_end if reads_on else start
            fetch_to = min(max(fetch_from + self._step, end), self._size)
            kept = self._window[start - self._window_start :] if reads_on else b""
            self._window = kept + self._web.range(self._url, fetch_from, fetch_to)
            self._window_start = start
        return self._window[start - self._window_start : end - self._window_start]


class RemoteWheel:
    """A wheel's members, by their path inside site-packages wherever the wheel keeps them."""

    def __init__(self, web: Web, url: str) -> None:
        self._url = url
        with _damage_as_unreadable(url):
            self._archive = zipfile.ZipFile(RemoteFile(web, url))
        self._members = {
            re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", info.filename): info
            for info in self._archive.infolist()
        }

    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def find(self, pattern: str) -> str | None:
        """The first member whose whole path matches."""
        return next((name for name in self._members if re.fullmatch(pattern, name)), None)

    def packed_size(self, name: str) -> int:
        return self._members[name].compress_size

    def read(self, name: str) -> bytes:
        return self._archive.read(self._members[name])

    def text(self, pattern: str) -> str | None:
        name = self.find(pattern)
        return None if name is None else self.read(name).decode("utf-8", "replace")

    def head(self, name: str, limit: int) -> Iterator[bytes]:
        """The start of a member in pieces, each fetched when it is asked for."""
        with self._archive.open(self._members[name]) as member:
            given = 0
            while given < limit and (piece := member.read(min(_CHUNK, limit - given))):
                given += len(piece)
                yield piece

    def metadata(self) -> Message:
        """Raises Unreadable if the wheel has none that can be read."""
        name = self.find(r"[^/]+\.dist-info/(METADATA|metadata)")
        if name is None or self._members[name].file_size > _LARGEST_METADATA:
            raise Unreadable(f"{self._url}: it has no METADATA, or a very large one")
        with _damage_as_unreadable(self._url):
            return Parser().parsestr(self.read(name).decode("utf-8", "replace"))


@contextmanager
def _damage_as_unreadable(url: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise Unreadable(f"{url}: it is not a sound wheel ({error})") from error
