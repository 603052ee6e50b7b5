"""Watches the memory of the computer while a program runs, from outside the program.

/proc shows its processes, and control groups show their limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

from whygpu.collectors import memory
from whygpu.host.local import LocalHost
from whygpu.host.processes import family, peak_resident
from whygpu.model.memory_use import Curve, HostMemory, Point, ProcessLimit
from whygpu.model.observed import Known, Observed

_FIRST_INTERVAL = 0.1
"""Seconds. A sample takes about 0.3 ms of processor time, and none of the program's."""
_MOST_POINTS = 200
"""At this number, neighbouring points are joined and the sampling interval is doubled."""
_FAMILY_TURN = 8
"""Samples between two searches for processes that threads have started; those of the main thread
are found at every sample."""
_LONGEST_WAIT = 1.0
_LIMIT_NAME = 26
"""The width of the first column of /proc/PID/limits."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def watch(pid: int) -> Callable[[], HostMemory]:
    """Watch a process. The function that is returned stops that, and returns what was seen."""
    try:
        watching = _Watch(pid)
    except Exception:
        # The program is running, which matters more than watching its memory.
        return lambda: _NOTHING_SEEN
    return watching.stop


_NOTHING_SEEN = HostMemory(Curve("kernel", "host", 0.0, ()), None, "", None, None)


class _Watch:
    """Samples a process and its descendants, in a thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._host = LocalHost()
        self._kills_before = memory.oom_kills(self._host)
        self._allowed = memory.collect(self._host).total_bytes
        self._began = time.time()
        self._points: list[Point] = []
        self._interval = _FIRST_INTERVAL
        self._least_available: int | None = None
        self._tightest: ProcessLimit | None = None
        self._peak = 0
        self._looks = 0
        self._stop = Event()
        self._thread = Thread(target=self._look_until_stopped, daemon=True)
        self._thread.start()

    def stop(self) -> HostMemory:
        self._stop.set()
        # The kernel answers at once unless a process is stuck in it; do not wait for that.
        self._thread.join(_LONGEST_WAIT)
        limit, source = None, ""
        if isinstance(self._allowed, Known):
            limit, source = self._allowed.value, self._allowed.source
        of_computer = source == "/proc/meminfo"
        return HostMemory(
            curve=Curve("kernel", "host", self._began, tuple(self._points)),
            limit=limit,
            limit_is="the computer's memory" if of_computer else source,
            least_available=self._least_available,
            kills=_difference(self._kills_before, memory.oom_kills(self._host)),
            process_limit=self._tightest,
            # The first sample may see our copy before exec, which is no peak of the program.
            peak=self._peak if self._looks > 1 and self._peak else None,
            limit_kind="computer" if of_computer else "control-group" if source else "unknown",
        )

    def _look_until_stopped(self) -> None:
        members = [self._pid]
        while True:
            thorough = self._looks % _FAMILY_TURN == 0
            with suppress(OSError, ValueError):
                members = family(self._pid, thorough=thorough)
                self._add(sum(_resident(pid) for pid in members))
            self._peak = max(self._peak, peak_resident(self._pid))
            for pid in members if thorough else ():
                with suppress(OSError, ValueError):
                    self._compare(_limits(pid))
            with suppress(OSError, ValueError, StopIteration):
                left = _available()
                self._least_available = min(left, self._least_available or left)
            self._looks += 1
            if self._stop.wait(self._interval):
                return

    def _add(self, resident: int) -> None:
        if not resident:
            return
        self._points.append(Point(round(time.time() - self._began, 3), resident, resident))
        if len(self._points) >= _MOST_POINTS:
            self._points = joined(self._points)
            self._interval *= 2

    def _compare(self, limits: list[ProcessLimit]) -> None:
        known = [*limits, self._tightest] if self._tightest is not None else limits
        self._tightest = min(known, key=lambda each: each.limit - each.in_use, default=None)


def joined(points: list[Point]) -> list[Point]:
    """Half as many points, with the minimum and the maximum of each pair."""
    pairs = [points[index : index + 2] for index in range(0, len(points), 2)]
    return [
        Point(pair[0].seconds, min(p.low for p in pair), max(p.high for p in pair))
        for pair in pairs
    ]


def _resident(pid: int) -> int:
    """The private memory of a process: without mapped files, which the kernel can drop."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE


def _limits(pid: int) -> list[ProcessLimit]:
    """The memory that setrlimit allows the process."""
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        allowed = {line[:_LIMIT_NAME].strip(): line[_LIMIT_NAME:].split()[0] for line in file}
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        pages = [int(word) for word in file.read().split()]
    # From statm: the first field is the address space, the sixth is data and stack.
    rows = (
        ("RLIMIT_AS", allowed["Max address space"], pages[0]),
        ("RLIMIT_DATA", allowed["Max data size"], pages[5]),
    )
    return [
        ProcessLimit(name, int(limit), used * _PAGE)
        for name, limit, used in rows
        if limit.isdecimal()
    ]


def _available() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


def _difference(before: Observed[int], after: Observed[int]) -> int | None:
    if isinstance(before, Known) and isinstance(after, Known):
        return after.value - before.value
    return None
