"""The processor time of child processes, such as the workers of a DataLoader, from /proc.

And for how long the program's own thread was ready to run and had to wait for a free core.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_CHILDREN = 256
MOST_POINTS = 1000


class Workers:
    """Reads /proc. Without it, nothing is found."""

    def __init__(self) -> None:
        self._found: "dict[int, dict[str, Any]]" = {}
        self._tick = os.sysconf("SC_CLK_TCK")
        self.waited: "dict[str, Any]" = {"pid": os.getpid(), "times": [], "seconds": []}

    def look(self, now: float) -> None:
        """Note how much processor time each child has taken up to now."""
        _add(self.waited, now, _seconds_waited())
        for pid in self._children():
            known = self._found.get(pid)
            if known is None and len(self._found) < MOST_CHILDREN:
                known = self._found[pid] = {"pid": pid, "times": [], "seconds": []}
            if known is not None:
                _add(known, now, self._seconds(pid))

    def _children(self) -> "list[int]":
        found: "list[int]" = []
        try:
            for task in os.listdir("/proc/self/task"):
                with open("/proc/self/task/%s/children" % task) as file:
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

    def found(self) -> "list[dict[str, Any]]":
        return list(self._found.values())


def _add(curve: "dict[str, Any]", now: float, seconds: "float | None") -> None:
    if seconds is None:
        return
    curve["times"].append(round(now, 3))
    curve["seconds"].append(round(seconds, 3))
    if len(curve["times"]) > MOST_POINTS:
        del curve["times"][1:-1:2]
        del curve["seconds"][1:-1:2]


def _seconds_waited() -> "float | None":
    """For how long the main thread has waited for a core, by the scheduler."""
    try:
        with open("/proc/self/task/%d/schedstat" % os.getpid()) as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None
