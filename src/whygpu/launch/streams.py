"""The program's standard error on its way to where it belongs, with a copy of its two ends kept.

Bytes pass unchanged and at once. Where standard output goes to the same terminal or pipe, it takes
the same way, so that the two keep their order. A file needs no copy: it is read afterwards.
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
from contextlib import suppress
from threading import Thread
from typing import Any

CHUNK = 64 * 1024
HEAD = 64 * 1024
TAIL = 256 * 1024
STDOUT, STDERR = 1, 2
_SETTINGS_TURN = 200
"""Milliseconds between two looks at the settings of the program's terminal while it is silent."""
_TURN = 0.05
"""Seconds between two looks at how far the passing on is."""


class Kept:
    """The beginning and the end of what passed."""

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
    """Made before the program starts; `descriptors` are what its process is given."""

    def __init__(self) -> None:
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
            # No terminal to be had: then the program keeps ours, and nothing is kept for later.
            return
        if self._is_terminal:
            self._settings = termios.tcgetattr(writer)
        self.descriptors[STDERR] = writer
        if _same(facts, os.fstat(STDOUT)):
            self.descriptors[STDOUT] = writer

    def start(self) -> None:
        """Called when the program has its end: from here on everything that comes is passed on."""
        for writer in set(self.descriptors.values()):
            os.close(writer)
        if self._reader >= 0:
            self._ended = False
            self._stop_reader, self._stop_writer = os.pipe()
            self._thread = Thread(target=self._pass_on, daemon=True)
            self._thread.start()

    def resized(self) -> None:
        """The terminal has another size now, and the program's own terminal has to follow."""
        if self._is_terminal and not self._ended:
            with suppress(OSError):
                _copy_size(STDERR, self._reader)

    def _follow_settings(self) -> None:
        """What a program that draws on the whole terminal sets on its own holds for the keyboard.

        Only what it has changed: by standard input it may have changed other things on ours.
        """
        if not self._is_terminal:
            return
        with suppress(OSError, termios.error):
            before, self._settings = self._settings, termios.tcgetattr(self._reader)
            # In the background it may not; without us, it would be stopped for trying.
            if before != self._settings and os.tcgetpgrp(STDERR) == os.getpgrp():
                changed = _with_changes(termios.tcgetattr(STDERR), before, self._settings)
                termios.tcsetattr(STDERR, termios.TCSANOW, changed)

    def _pass_on(self) -> None:
        # Not select(), which knows no descriptor above 1023: whoever starts us may have many open.
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
                # Whoever read our standard error has gone; the program is to notice.
                break
            self._passed += len(data)
        self._ended = True
        os.close(self._reader)

    def finish(self, seconds: float) -> bool:
        """Wait for what is on its way; False if a process that outlives the program has more.

        However slowly our standard error is read, what the program wrote comes before what we say.
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
            # Closed by now: all has passed.
            return 0

    def hand_over(self) -> None:
        """Leave the passing on to a process of its own, which ends when the last writer does."""
        assert self._thread is not None
        os.write(self._stop_writer, b".")
        self._thread.join()
        os.close(self._stop_reader)
        if os.fork() == 0:
            # Not the terminal's any more, and holding nothing that somebody waits for the end of.
            os.setsid()
            _close_all_but(self._reader, STDERR)
            self._is_terminal = False
            self._stop_reader, _ = os.pipe()
            self._pass_on()
            os._exit(0)

    def text(self) -> str:
        """The first and the last of what the program wrote."""
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
    """A terminal like the one on standard error, which changes nothing of what passes through."""
    reader, writer = os.openpty()
    settings = termios.tcgetattr(STDERR)
    settings[tty.OFLAG] &= ~termios.OPOST
    termios.tcsetattr(writer, termios.TCSANOW, settings)
    _copy_size(STDERR, writer)
    return reader, writer


def _with_changes(settings: list[Any], before: list[Any], now: list[Any]) -> list[Any]:
    """The settings with what differs between two others changed as it is there."""
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
            # A terminal whose other end nobody holds any more.
            return b""
        raise


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(STDERR, view) :]
        except BlockingIOError:
            # Somebody we share it with has set it to not wait.
            room = select.poll()
            room.register(STDERR, select.POLLOUT)
            room.poll()


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))
