"""The processor time of child processes, such as the workers of a DataLoader, from /proc, and for
how long they waited for a core.

And for how long the program's own thread, and the framework's threads, were ready to run and had to
wait for a free core, and the cores of the machine had nothing to do.
"""

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_CHILDREN = 256
SHORTEST_PERIOD = 0.3
"""Seconds: reading /proc more often would cost more than it shows."""
MOST_POINTS = 1000
THREADS_PERIOD = 1.0
THREADS_A_SECOND = 32
"""A framework has hundreds of threads on a large machine: to look at one takes 10 microseconds."""


class Workers:
    """Reads /proc. Without it, nothing is found."""

    def __init__(self) -> None:
        self._found: "dict[int, dict[str, Any]]" = {}
        self._tick = os.sysconf("SC_CLK_TCK")
        self._due = 0.0
        self.waited: "dict[str, Any]" = {"pid": os.getpid(), "times": [], "seconds": []}
        self.idle: "dict[str, Any]" = {"pid": 0, "times": [], "seconds": []}
        self.threads_waited: "dict[str, Any]" = {"pid": 0, "times": [], "seconds": []}
        self._threads_due = 0.0
        self._threads: "dict[int, float]" = {}
        self._longest_waits = 0.0

    def look(self, now: float) -> None:
        """Note how much processor time each child has taken up to now."""
        if now < self._due:
            return
        self._due = now + SHORTEST_PERIOD
        _add(self.waited, now, _seconds_waited())
        _add(self.idle, now, self._seconds_idle())
        if now >= self._threads_due:
            _add(self.threads_waited, now, self._framework_waited())
            self._threads_due = now + max(THREADS_PERIOD, len(self._threads) / THREADS_A_SECOND)
        for pid in self._children():
            known = self._found.get(pid)
            if known is None and len(self._found) < MOST_CHILDREN:
                known = {"pid": pid, "times": [], "seconds": [], "waited": []}
                self._found[pid] = known
            if known is not None:
                _add(known, now, self._seconds(pid), _seconds_waited(pid, pid) or 0.0)

    def _framework_waited(self) -> "float | None":
        """For how long the framework's threads have waited for a core: between two looks, the one
        that waited longest counts, because the others wait for it."""
        # Before Python 3.8, its own threads cannot be told from those of the framework.
        python = {getattr(thread, "native_id", None) for thread in threading.enumerate()}
        own = getattr(threading, "get_native_id", lambda: None)()
        if None in python or own is None:
            return None
        try:
            numbers = {int(name) for name in os.listdir("/proc/self/task")}
        except (OSError, ValueError):
            return None
        waits = {number: _seconds_waited("self", number) for number in numbers - python - {own}}
        found = {number: seconds for number, seconds in waits.items() if seconds is not None}
        # A new thread may have the number of one that has ended, and has waited for less.
        grown = [seconds - self._threads.get(number, seconds) for number, seconds in found.items()]
        self._threads = found
        self._longest_waits += max([0.0, *grown])
        return self._longest_waits

    def _children(self) -> "list[int]":
        """The children of Python's threads: a framework has hundreds more, which start none."""
        found: "list[int]" = []
        # Before Python 3.8, only that of the main thread is known.
        threads = [getattr(thread, "native_id", None) for thread in threading.enumerate()]
        for number in {os.getpid(), *(number for number in threads if number is not None)}:
            try:
                with open("/proc/self/task/%d/children" % number) as file:
                    found += [int(word) for word in file.read().split()]
            except (OSError, ValueError):
                pass
        return found

    def _seconds(self, pid: int) -> "float | None":
        try:
            with open("/proc/%d/stat" % pid) as file:
                # The name of the program stands in brackets, and may contain anything.
                fields = file.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / self._tick
        except (OSError, ValueError, IndexError):
            return None

    def _seconds_idle(self) -> "float | None":
        """For how long the cores of the machine have been idle, or waited for storage."""
        try:
            with open("/proc/stat") as file:
                fields = file.readline().split()
            return (int(fields[4]) + int(fields[5])) / self._tick
        except (OSError, ValueError, IndexError):
            return None

    def found(self) -> "list[dict[str, Any]]":
        return list(self._found.values())


def _add(curve: "dict[str, Any]", now: float, seconds: "float | None", waited: float = 0.0) -> None:
    if seconds is None:
        return
    curve["times"].append(round(now, 3))
    curve["seconds"].append(round(seconds, 3))
    if "waited" in curve:
        curve["waited"].append(round(waited, 3))
    if len(curve["times"]) > MOST_POINTS:
        for column in ("times", "seconds", "waited"):
            del curve.get(column, [])[1:-1:2]


def _seconds_waited(pid: "int | str" = "self", thread: "int | None" = None) -> "float | None":
    """For how long a thread, the main one of this process, has waited for a core."""
    try:
        with open("/proc/%s/task/%d/schedstat" % (pid, thread or os.getpid())) as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None
