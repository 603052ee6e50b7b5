"""How many cores this process may use: by its affinity, and by the limit of its container.

A container may be limited to the time of two cores on a machine with 64, and sees all 64.
"""

import math
import os

ROOT = "/sys/fs/cgroup"
OWN_GROUPS = "/proc/self/cgroup"
DEEPEST = 20


def usable_cores(root: str = ROOT, own_groups: str = OWN_GROUPS) -> int:
    """A limit of one and a half cores counts as two."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    limits = [_limit(folder) for folder in _folders(root, own_groups)]
    return max(1, min([cores, *(math.ceil(limit) for limit in limits if limit is not None)]))


def _folders(root: str, own_groups: str) -> "list[str]":
    """The folders of the groups around this process, of both versions of cgroups."""
    found = []
    for line in _lines(own_groups):
        controllers, separator, path = line.partition(":")[2].partition(":")
        if not separator or (controllers and "cpu" not in controllers.split(",")):
            continue
        bases = [os.path.join(root, name) for name in (controllers, "cpu")] if controllers else []
        for base in bases or [root]:
            inner = path.strip("/")
            # In a container, the path may be that of the machine, which is not mounted: then only
            # the root is there.
            for _ in range(DEEPEST):
                found.append(os.path.join(base, inner))
                if not inner:
                    break
                inner = os.path.dirname(inner)
    return found


def _limit(folder: str) -> "float | None":
    """In cores; None for no limit."""
    words = " ".join(_lines(os.path.join(folder, "cpu.max"))).split()
    if not words:
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = [word for name in files for word in _lines(os.path.join(folder, name))[:1]]
    try:
        quota, period = float(words[0]), float(words[1])
    except (ValueError, IndexError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def _lines(path: str) -> "list[str]":
    try:
        with open(path) as file:
            return file.read(10000).splitlines()
    except (OSError, ValueError):
        return []
