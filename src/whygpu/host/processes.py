"""Reads the descendants and the memory of running processes from the kernel."""

from __future__ import annotations

import math
import os
from contextlib import suppress

MOST_MEMBERS = 64
"""The most processes of one family that are measured."""
LOOK_SECONDS = 0.02
"""Seconds between two measurements of a process with a memory limit."""
_THOROUGH_TURN = 8
"""Measurements between two searches for processes that threads have started. Those of the main
thread are found at every measurement."""
_WORST_CHILD = "1000"
LARGEST_ENVIRONMENT = 8 << 20
"""Bytes; the kernel's own limit for arguments and variables together is 6 MiB."""


def peak_resident(pid: int) -> int:
    """The peak resident memory of the process so far, in bytes; 0 if it has ended."""
    return sum(_fields(f"/proc/{pid}/status", b"VmHWM:"))


def children(pid: int, *, thorough: bool = True) -> list[int]:
    """The existing child processes, started or adopted.

    `thorough`: also those that threads other than the main thread have started.
    """
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task") if thorough else [str(pid)]:
            # It may have ended since it was listed.
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def family(pid: int, *, thorough: bool, most: float = MOST_MEMBERS) -> list[int]:
    """The process and its descendants, parents before their children; `thorough` as above."""
    found = [pid]
    for each in found:
        # The list grows during the loop.
        if len(found) >= most:
            break
        found += [child for child in children(each, thorough=thorough) if child not in found]
    return found


def descendants(pid: int) -> list[int]:
    """All processes below this one, however many, without itself."""
    return family(pid, thorough=True, most=math.inf)[1:]


def first_to_be_killed(pid: int) -> None:
    """If memory runs out, let the kernel kill this process and its descendants first, and not the
    programs of other users."""
    with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
        file.write(_WORST_CHILD)


class MemoryWatch:
    """Compares the memory of a process and its descendants with a limit.

    Mapped files do not count: the kernel drops their pages when it needs memory. The limit does not
    apply to the address space, because CUDA and XLA reserve far more of it than they use.
    """

    def __init__(self, pid: int, limit: int | None) -> None:
        self.limit = limit
        self.peak = 0
        """The largest resident memory that was seen, in bytes: of the process with mapped files, or
        of the family without them."""
        self.exceeded = False
        self._pid = pid
        self._turn = 0
        self._members = [pid]

    def look(self) -> bool:
        """Measure once; True if the limit is exceeded, now or earlier."""
        thorough = self._turn % _THOROUGH_TURN == 0
        members = family(self._pid, thorough=thorough)
        if thorough:
            self._members = members
        else:
            members = list(dict.fromkeys([*self._members, *members]))
        self._turn += 1
        held = sum(map(_held, members))
        self.peak = max(self.peak, peak_resident(self._pid))
        if self.limit is not None and held > self.limit and len(members) > 1:
            # Forked processes share pages, which count once for each of them.
            held = sum(map(_share, members))
        self.peak = max(self.peak, held if len(members) > 1 else 0)
        self.exceeded = self.exceeded or (self.limit is not None and held > self.limit)
        return self.exceeded


def _held(pid: int) -> int:
    """The most memory that ending the process could free."""
    return sum(_fields(f"/proc/{pid}/status", b"RssAnon:", b"RssShmem:"))


def _share(pid: int) -> int:
    """The same, with each page divided by the number of processes that have it."""
    fields = _fields(f"/proc/{pid}/smaps_rollup", b"Pss_Anon:", b"Pss_Shmem:")
    return sum(fields) if fields else _held(pid)


def _fields(path: str, *names: bytes) -> list[int]:
    """These fields of a kernel file, in bytes; none if the process has ended."""
    found = []
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(names):
                    found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    return found


def variables(pid: int) -> list[bytes]:
    """Each `NAME=value` that the process was started with; none if that is not visible.

    During exec, a process shows none for a moment.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return [each for each in file.read(LARGEST_ENVIRONMENT).split(b"\0") if each]
    except OSError:
        return []
