"""Processes that leave the group and the session of the one that started them.

Killing a process group misses a process that has called setsid(), and one whose parent has ended
belongs to no tree that leads to us. So for as long as a child of ours runs, Linux is told to hand
such orphans to us (PR_SET_CHILD_SUBREAPER). Those that carry the child's mark in their variables
are killed with it. No other process is touched: in a program that calls whygpu's functions, other
children are the program's own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock

from whygpu.host.processes import children, descendants, has_variable

MARK = "WHYGPU_CHILD"
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_PATIENCE = 2.0
"""Seconds for killed processes to go; one that is stuck in the kernel takes longer."""
_TURN = 0.005
_ENOUGH_LOOKS = 4


class Orphans:
    """The processes below one child that have left it."""

    def __init__(self) -> None:
        self._value = os.urandom(8).hex()
        self._adopting = True
        self.parent = 0
        """The child itself, which somebody else waits for."""
        _adoption.begin()

    def marked(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment for the child, by which all that it starts is known."""
        return {**environ, MARK: self._value}

    def kill(self) -> set[int]:
        """Kill those that are alive, with all that is below them; returns them."""
        mark = f"{MARK}={self._value}".encode()
        ours = [
            pid for pid in children(os.getpid()) if pid != self.parent and has_variable(pid, mark)
        ]
        whole = {each for pid in ours for each in (pid, *descendants(pid))}
        kill_all(whole)
        return whole

    def end(self, *, thorough: bool = True) -> None:
        """Kill them for good, and adopt no more. The second call does nothing.

        `thorough`: look several times, as one does after a program that ran for long.
        """
        if self._adopting:
            self._adopting = False
            if thorough or self.kill():
                _kill_until_gone(self.kill)
            _adoption.end()


@contextmanager
def no_survivors() -> Iterator[None]:
    """Whatever processes there are below us when the block ends, marked or not, end with it.

    For a process that is whygpu's alone, and started none before.
    """
    if children(os.getpid()):
        # The process became whygpu by exec, and what it had started before is not ours.
        yield
        return
    _adoption.hold()
    try:
        yield
    finally:
        if _adoption.was_needed:
            _kill_until_gone(_kill_all_below)
        _adoption.end()


def kill_all(pids: Iterable[int]) -> None:
    for pid in pids:
        # Gone already, or become someone else's.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _kill_all_below() -> set[int]:
    below = {pid for pid in descendants(os.getpid()) if not _is_zombie(pid)}
    kill_all(below)
    return below


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return True


def _kill_until_gone(kill: Callable[[], set[int]]) -> None:
    """Look again until nothing has been found a few times in a row.

    A process may start another while it is being killed; one that is in the middle of exec has no
    variables for a moment; and the kernel's list of children may leave one out while others end.
    """
    deadline = time.monotonic() + _PATIENCE
    killed: set[int] = set()
    looks_in_vain = 0
    while True:
        found = kill()
        looks_in_vain = 0 if found else looks_in_vain + 1
        killed |= found
        for pid in killed:
            # Those that were handed to us are ours to wait for, the others are not.
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if looks_in_vain == _ENOUGH_LOOKS or time.monotonic() > deadline:
            return
        time.sleep(_TURN)


class _Adoption:
    """Whether this process adopts orphans: as long as somebody needs it, and as before after."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0
        self.was_needed = False

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if not self.was_needed:
                self.was_needed = True
                self._before = _get_subreaper()
                _set_subreaper(1)

    def hold(self) -> None:
        """Once somebody has begun, go on until end() is called for this, too."""
        with self._lock:
            self._users += 1

    def end(self) -> None:
        """After begin() or hold()."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self.was_needed:
                self.was_needed = False
                _set_subreaper(self._before)


_adoption = _Adoption()


def _get_subreaper() -> int:
    if sys.platform != "linux":
        return 0
    import ctypes

    found = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_GET_SUBREAPER, ctypes.byref(found), 0, 0, 0)
    return found.value


def _set_subreaper(value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_SUBREAPER, value, 0, 0, 0)
