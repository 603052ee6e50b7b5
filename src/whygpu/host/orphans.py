"""Finds and kills processes that left the process group and session of their parent.

Killing a process group misses a process that has called setsid(). If its parent has ended, it is
not among the descendants of whygpu either. So while whygpu runs a child, it asks Linux to become
the parent of such orphans (PR_SET_CHILD_SUBREAPER). Orphans with the child's mark in their
environment are killed with it. No other process is touched: in a program that calls whygpu's
functions, other children belong to the program.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock

from whygpu.host.processes import children, descendants, variables

MARK = "WHYGPU_CHILD"
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_PATIENCE = 2.0
"""Seconds to wait for killed processes; one that is stuck in the kernel takes longer."""
_TURN = 0.005
_ENOUGH_LOOKS = 4


class Orphans:
    """The descendants of one child that have left its process group."""

    def __init__(self) -> None:
        self._value = os.urandom(8).hex()
        self._adopting = True
        self._is_unclear = False
        """At the last look, a child did not show its variables: it may be one of them, in exec."""
        self.parent = 0
        """The child itself, which the caller waits for."""
        _adoption.begin()

    def marked(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment for the child, with a mark that all its descendants inherit."""
        return {**environ, MARK: self._value}

    def kill(self) -> set[int]:
        """Kill those that are alive, with their descendants; returns them."""
        mark = f"{MARK}={self._value}".encode()
        shown = {pid: variables(pid) for pid in children(os.getpid()) if pid != self.parent}
        ours = [pid for pid, found in shown.items() if mark in found]
        self._is_unclear = any(not found and not _is_zombie(pid) for pid, found in shown.items())
        whole = {each for pid in ours for each in (pid, *descendants(pid))}
        kill_all(whole)
        return whole

    def end(self, *, thorough: bool = True) -> None:
        """Kill all of them and stop adopting. A second call does nothing.

        `thorough`: search several times, for use after a long-running program.
        """
        if self._adopting:
            self._adopting = False
            if thorough or self.kill() or self._is_unclear:
                _kill_until_gone(self.kill)
            _adoption.end()


@contextmanager
def no_survivors() -> Iterator[None]:
    """Kill all descendants when the block ends, marked or not.

    Only for a process that belongs to whygpu alone and has started no other process before.
    """
    if children(os.getpid()):
        # The process became whygpu by exec, so its earlier children do not belong to whygpu.
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
    if sys.platform == "win32":
        # None is ever found there: children are read from /proc.
        return
    for pid in pids:
        # It has ended, or its number now belongs to another user's process.
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
    """Repeat until nothing is found several times in a row.

    A process may start another while it is being killed. During exec, a process has no environment
    for a moment. And the kernel's list of children may omit one while others end.
    """
    deadline = time.monotonic() + _PATIENCE
    killed: set[int] = set()
    looks_in_vain = 0
    while True:
        found = kill()
        looks_in_vain = 0 if found else looks_in_vain + 1
        killed |= found
        if sys.platform != "win32":
            for pid in killed:
                # Only adopted processes are children of this one and need a wait.
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        if looks_in_vain == _ENOUGH_LOOKS or time.monotonic() > deadline:
            return
        time.sleep(_TURN)


class _Adoption:
    """Makes this process adopt orphans while a caller needs it, then restores the old setting."""

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
        """If it has begun, continue until end() is called for this as well."""
        with self._lock:
            self._users += 1

    def end(self) -> None:
        """Undo one begin() or hold()."""
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
