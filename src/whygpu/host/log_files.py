"""Reads logs piece by piece, from files and from standard input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator

from whygpu.errors import UsageError
from whygpu.host.files import open_regular

OnRead = Callable[[int, int], None]
"""Called with the bytes that were read so far, and the size of the file; 0 if that is unknown."""

PIECE = 1 << 18


def pieces_of_input(name: str, on_read: OnRead) -> Iterator[bytes]:
    done = 0
    try:
        _refuse_endless("standard input", sys.stdin.fileno())
        # Unbuffered: a buffered read would wait until a piece is full.
        while piece := os.read(sys.stdin.fileno(), PIECE):
            done += len(piece)
            on_read(done, 0)
            yield piece
    except OSError as error:
        raise UsageError(f"cannot read standard input: {error.strerror}") from error


def pieces_of_file(
    name: str, on_read: OnRead = lambda done, size: None, *, regular_only: bool = False
) -> Iterator[bytes]:
    """`regular_only`: refuse a pipe, which could block forever. Users may name one themselves."""
    done = 0
    try:
        with open(name, "rb", buffering=0, opener=open_regular if regular_only else None) as file:
            _refuse_endless(name, file.fileno())
            size = os.fstat(file.fileno()).st_size
            for piece in _first_bytes(file.read, size):
                done += len(piece)
                on_read(done, size)
                yield piece
    except OSError as error:
        # Opening a folder is a lack of permission on Windows.
        if os.path.isdir(name):
            logs = os.path.join(name, "*")
            raise UsageError(f"{name} is a folder; name the logs in it: {logs}") from None
        raise UsageError(f"cannot read {name}: {error.strerror}{_perhaps_a_word(name)}") from error


def _perhaps_a_word(name: str) -> str:
    """A message of one word, such as Killed, looks like the name of a file."""
    if not name.isalnum() or os.path.lexists(name):
        return ""
    return "; to explain a message of one word: echo WORD | whygpu explain"


def _refuse_endless(name: str, descriptor: int) -> None:
    """Of the devices, a terminal and /dev/null are read; /dev/zero would never end."""
    facts = os.fstat(descriptor)
    if not stat.S_ISCHR(facts.st_mode) or os.isatty(descriptor) or sys.platform == "win32":
        return
    if facts.st_rdev != os.stat(os.devnull).st_rdev:
        raise UsageError(f"{name} is a device, not a log")


def _first_bytes(read: Callable[[int], bytes | None], size: int) -> Iterator[bytes]:
    """A file that grows while it is read ends where it ended at the start; pipes have no size."""
    left = size
    while piece := read(min(PIECE, left) if size else PIECE):
        yield piece
        left -= len(piece)
        if size and left <= 0:
            return
