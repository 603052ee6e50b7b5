"""Forwards the program's standard error, and keeps a copy of its beginning and end.

Bytes are forwarded unchanged and at once. If standard output goes to the same terminal or pipe, it
is forwarded the same way, so that the two keep their order. A file needs no copy: it is read
afterwards.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import struct
import termios
import tty
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

CHUNK = 64 * 1024
HEAD = 64 * 1024
TAIL = 256 * 1024
STDOUT, STDERR = 1, 2
_SETTINGS_TURN = 200
"""Milliseconds between two checks of the terminal settings while the program is silent."""
_TURN = 0.05
"""Seconds between two checks of how much has been forwarded."""


class Kept:
    """The beginning and the end of what was forwarded."""

    def __init__(self) -> None:
        self._head = b""
        self._tail: deque[bytes] = deque()
        self._size = 0

    def add(self, data: bytes) -> None:
        room = HEAD - len(self._head)
        self._head += data[:room]
        data = data[room:] if room < len(data) else b""
        if not data:
            return
        self._tail.append(data)
        self._size += len(data)
        while self._size - len(self._tail[0]) > TAIL:
            self._size -= len(self._tail.popleft())

    def text(self) -> str:
        return (self._head + b"".join(self._tail)).decode("utf-8", "replace")


class ErrorStream:
    """Created before the program starts; `descriptors` are for its process."""

    def __init__(self, seen: Callable[[bytes], None] = lambda data: None) -> None:
        """`seen` is called with what has been forwarded, in the thread that forwards."""
        self._seen = seen
        self._kept = Kept()
        self._reader = -1
        self._thread: Thread | None = None
        self._stop_reader, self._stop_writer = -1, -1
        self._file_start = 0
        self._is_terminal = False
        self._settings: list[Any] = []
        self._ended = True
        self._taken = self._passed = 0
        facts = os.fstat(STDERR)
        if stat.S_ISREG(facts.st_mode):
            self._file_start = facts.st_size
            self._is_file = True
        else:
            self._is_file = False
        self.descriptors: dict[int, int] = {}
        if self._is_file or _is_null(facts):
            return
        self._is_terminal = os.isatty(STDERR)
        try:
            self._reader, writer = _terminal() if self._is_terminal else os.pipe()
        except OSError:
            # No pseudo-terminal is available: the program uses ours, and no copy is kept.
            return
        if self._is_terminal:
            self._settings = termios.tcgetattr(writer)
        self.descriptors[STDERR] = writer
        if _same(facts, os.fstat(STDOUT)):
            self.descriptors[STDOUT] = writer

    def start(self) -> None:
        """Forward everything from now on. Called when the program has inherited its descriptors."""
        for writer in set(self.descriptors.values()):
            os.close(writer)
        if self._reader >= 0:
            self._ended = False
            self._stop_reader, self._stop_writer = os.pipe()
            self._thread = Thread(target=self._pass_on, daemon=True)
            self._thread.start()

    def resized(self) -> None:
        """Give the program's terminal the new size of ours."""
        if self._is_terminal and not self._ended:
            with suppress(OSError):
                _copy_size(STDERR, self._reader)

    def _follow_settings(self) -> None:
        """Copy settings that the program changed on its terminal to ours, where the keyboard is.

        Only changed settings: through standard input, it may have changed others on ours.
        """
        if not self._is_terminal:
            return
        with suppress(OSError, termios.error):
            before, self._settings = self._settings, termios.tcgetattr(self._reader)
            # A background process must not: without us, the kernel would stop it for that.
            if before != self._settings and os.tcgetpgrp(STDERR) == os.getpgrp():
                changed = _with_changes(termios.tcgetattr(STDERR), before, self._settings)
                termios.tcsetattr(STDERR, termios.TCSANOW, changed)

    def _pass_on(self) -> None:
        # Not select(), which fails for descriptors above 1023; we may inherit many.
        waiting = select.poll()
        waiting.register(self._reader, select.POLLIN)
        waiting.register(self._stop_reader, select.POLLIN)
        while True:
            ready = dict(waiting.poll(_SETTINGS_TURN if self._is_terminal else None))
            if self._stop_reader in ready:
                return
            self._follow_settings()
            if not ready:
                continue
            data = _read(self._reader)
            if not data:
                break
            self._taken += len(data)
            self._kept.add(data)
            try:
                _write(data)
            except OSError:
                # Nobody reads our standard error any more. Closing the pipe tells the program.
                break
            self._passed += len(data)
            # Whatever fails there, the program's output goes on.
            with suppress(Exception):
                self._seen(data)
        self._ended = True
        os.close(self._reader)

    def finish(self, seconds: float) -> bool:
        """Wait until all is forwarded; False if a process that outlives the program has more.

        However slowly standard error is read, the program's output comes before our report.
        """
        if self._thread is not None:
            due = self._taken + self._waiting_bytes()
            while not self._ended and self._passed < due:
                self._thread.join(_TURN)
            self._thread.join(seconds)
        return self._ended

    def _waiting_bytes(self) -> int:
        count = struct.pack("i", 0)
        try:
            return int(struct.unpack("i", fcntl.ioctl(self._reader, termios.FIONREAD, count))[0])
        except OSError:
            # Closed by now: everything was forwarded.
            return 0

    def hand_over(self) -> None:
        """Let a new process forward the rest. It ends when the last writer does."""
        assert self._thread is not None
        os.write(self._stop_writer, b".")
        self._thread.join()
        os.close(self._stop_reader)
        if os.fork() == 0:
            # Leave the terminal, and close whatever another process may wait for.
            os.setsid()
            _close_all_but(self._reader, STDERR)
            self._is_terminal = False
            self._stop_reader, _ = os.pipe()
            self._pass_on()
            os._exit(0)

    def text(self) -> str:
        """The beginning and the end of what the program wrote."""
        if self._is_file:
            self._read_file()
        return self._kept.text()

    def _read_file(self) -> None:
        with suppress(OSError), open(f"/proc/self/fd/{STDERR}", "rb") as file:
            file.seek(self._file_start)
            self._kept.add(file.read(HEAD))
            size = os.fstat(STDERR).st_size
            file.seek(max(file.tell(), size - TAIL))
            self._kept.add(file.read(TAIL))


def _is_null(facts: os.stat_result) -> bool:
    return stat.S_ISCHR(facts.st_mode) and not os.isatty(STDERR)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _terminal() -> tuple[int, int]:
    """A pseudo-terminal like the terminal on standard error, which changes no byte."""
    reader, writer = os.openpty()
    settings = termios.tcgetattr(STDERR)
    settings[tty.OFLAG] &= ~termios.OPOST
    termios.tcsetattr(writer, termios.TCSANOW, settings)
    _copy_size(STDERR, writer)
    return reader, writer


def _with_changes(settings: list[Any], before: list[Any], now: list[Any]) -> list[Any]:
    """The settings, with the differences between two others applied."""
    result = list(settings)
    for flags in (tty.IFLAG, tty.OFLAG, tty.LFLAG):
        changed = before[flags] ^ now[flags]
        result[flags] = settings[flags] & ~changed | now[flags] & changed
    result[tty.CC] = [
        own if old == new else new
        for own, old, new in zip(settings[tty.CC], before[tty.CC], now[tty.CC], strict=True)
    ]
    return result


def _copy_size(source: int, target: int) -> None:
    size = fcntl.ioctl(source, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError as error:
        if error.errno == errno.EIO:
            # A terminal whose other end is closed.
            return b""
        raise


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(STDERR, view) :]
        except BlockingIOError:
            # A process that shares it has made it non-blocking.
            room = select.poll()
            room.register(STDERR, select.POLLOUT)
            room.poll()


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))
