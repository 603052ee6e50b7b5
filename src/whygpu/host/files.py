"""Reads files that whygpu does not control: regular files only, up to a limit."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from itertools import islice

from whygpu.host import limits
from whygpu.host.systems import READ
from whygpu.model.units import size_text

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_PIECE = 1 << 20


class TooLarge(OSError):
    """The file, or folder, has more than the limit."""


def open_regular(path: str, flags: int) -> int:
    """An opener for open(). Refuses pipes, which could block, and devices, which may be endless."""
    descriptor = os.open(path, flags | READ)
    mode = os.fstat(descriptor).st_mode
    # Opening a folder fails in open() itself, with the usual error.
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return descriptor
    os.close(descriptor)
    kind = next((name for test, name in _KINDS if test(mode)), "something else")
    raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", path)


def read_start(path: str, size: int) -> bytes:
    """At most the first `size` bytes of a regular file."""
    with open(path, "rb", opener=open_regular) as file:
        return file.read(size)


def read_whole(path: str, limit: int) -> bytes:
    """A whole regular file; raises TooLarge if it has more than `limit` bytes."""
    return _within(read_start(path, limit + 1), path, limit)


def is_substituted(path: str) -> bool:
    """Whether the name is a process substitution of the shell: `<(command)`."""
    return path.startswith(("/dev/fd/", "/proc/self/fd/")) or path == "/dev/stdin"


def read_given(path: str, limit: int) -> bytes:
    """A file that the user has named. It may be a pipe, as for `<(command)`.

    A pipe without a writer is an error, because reading it would block.
    """
    descriptor = os.open(path, READ)
    with os.fdopen(descriptor, "rb", buffering=0):
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode):
            start = _first_of_pipe(descriptor, path)
            return _within(start + _rest(descriptor, limit), path, limit)
        if not stat.S_ISREG(mode):
            kind = next((name for test, name in _KINDS if test(mode)), "something else")
            raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", path)
        return _within(_rest(descriptor, limit), path, limit)


def _first_of_pipe(descriptor: int, path: str) -> bytes:
    """The data that is in the pipe now. Later reads wait for the writer."""
    try:
        start = os.read(descriptor, _PIECE)
    except BlockingIOError:
        start = None
    if start == b"":
        raise OSError(errno.EINVAL, "it is a named pipe without a writer", path)
    if sys.platform != "win32":
        os.set_blocking(descriptor, True)
    return start or b""


def _rest(descriptor: int, limit: int) -> bytes:
    pieces = []
    left = limit + 1
    while left > 0 and (piece := os.read(descriptor, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _within(content: bytes, path: str, limit: int) -> bytes:
    if len(content) > limit:
        raise TooLarge(errno.EFBIG, f"it is larger than {size_text(limit)}", path)
    return content


def names_in(folder: str, most: int = limits.FOLDER_ENTRIES) -> list[str]:
    """The names in a folder, sorted; raises TooLarge if there are more than `most`."""
    names = list(islice(_names(folder), most + 1))
    if len(names) > most:
        raise TooLarge(errno.EFBIG, f"it has more than {most:,} entries", folder)
    return sorted(names)


def _names(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.name
