"""Memory that this process may use: that of the machine, or the limit of a control group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.host.base import Host
from whygpu.host.limits import spare
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.system import Memory

CGROUPS = "/sys/fs/cgroup"


def collect(host: Host) -> Memory:
    shared = host.disk("/dev/shm")
    if host.platform.system != "Linux":
        reason = Unknown(f"memory is read on Linux only; this is {host.platform.system}")
        return Memory(reason, reason, shared)
    text = host.read("/proc/meminfo")
    total, available = _field(text, "MemTotal"), _field(text, "MemAvailable")
    if isinstance(total, Known):
        limits = [limit for limit in _limits(host) if limit.bytes < total.value]
        if limits:
            least = min(limits, key=lambda limit: limit.bytes)
            total = Known(least.bytes, least.source)
        # An enclosing group may be closer to its limit, because of other processes in it.
        for limit in limits:
            available = _smaller(available, limit.free(host))
    return Memory(total, available, shared)


def spare_bytes(host: Host) -> int | None:
    """How much memory a process that runs the user's code may use now; None if unknown."""
    available = collect(host).available_bytes
    return spare(available.value) if isinstance(available, Known) else None


def oom_kills(host: Host) -> Observed[int]:
    """How many processes the kernel has killed for lack of memory: in this control group or, if
    that does not say, on the whole machine."""
    for folder, layout in _groups(host):
        counted = _count(host.read(f"{folder}/{layout.events}"))
        if counted is not None:
            return counted
    counted = _count(host.read("/proc/vmstat"))
    return counted if counted is not None else Unknown("the kernel does not count them")


def _count(text: Observed[str]) -> Known[int] | None:
    if not isinstance(text, Known):
        return None
    line = re.search(r"^oom_kill (\d+)$", text.value, re.MULTILINE)
    return Known(int(line[1]), text.source) if line else None


class _Layout(NamedTuple):
    """Where one version of control groups keeps its figures."""

    root: str
    limit: str
    usage: str
    reclaimable: str
    events: str


V1 = _Layout(
    f"{CGROUPS}/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
    "memory.oom_control",
)
V2 = _Layout(CGROUPS, "memory.max", "memory.current", "inactive_file", "memory.events")


class _Limit(NamedTuple):
    folder: str
    layout: _Layout
    bytes: int

    @property
    def source(self) -> str:
        return f"{self.folder}/{self.layout.limit}"

    def free(self, host: Host) -> Observed[int]:
        """What is left of it. Cached files count as used, but the kernel can drop them."""
        usage = host.read(f"{self.folder}/{self.layout.usage}")
        if not isinstance(usage, Known) or not usage.value.strip().isdecimal():
            return Unknown(f"{self.folder} does not report its usage")
        statistics = host.read(f"{self.folder}/memory.stat")
        cached = 0
        if isinstance(statistics, Known):
            line = re.search(rf"^{self.layout.reclaimable} (\d+)$", statistics.value, re.MULTILINE)
            cached = int(line[1]) if line else 0
        return Known(max(0, self.bytes - int(usage.value) + cached), usage.source)


def _limits(host: Host) -> Iterator[_Limit]:
    """Limits of this process's control group and of every group around it."""
    for folder, layout in _groups(host):
        value = host.read(f"{folder}/{layout.limit}")
        if isinstance(value, Known) and value.value.strip().isdecimal():
            yield _Limit(folder, layout, int(value.value))


def _groups(host: Host) -> Iterator[tuple[str, _Layout]]:
    """This process's control group and every group around it, by folder."""
    text = host.read("/proc/self/cgroup")
    if not isinstance(text, Known):
        return
    for line in text.value.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            layout = V2
        elif "memory" in controllers.split(","):
            layout = V1
        else:
            continue
        for folder in _upwards(layout.root, group):
            yield folder, layout


def _upwards(root: str, group: str) -> Iterator[str]:
    """The group's folder and those above it. Inside a container only the root may exist."""
    parts = [part for part in group.split("/") if part and part != ".."]
    for length in range(len(parts), -1, -1):
        yield "/".join([root, *parts[:length]])


def _smaller(first: Observed[int], second: Observed[int]) -> Observed[int]:
    """Unknown if either is unknown, because that one may be the smaller."""
    if isinstance(first, Known) and isinstance(second, Known):
        return min(first, second, key=lambda known: known.value)
    return second if isinstance(first, Known) else first


def _field(text: Observed[str], name: str) -> Observed[int]:
    if isinstance(text, Unknown):
        return text
    if isinstance(text, Absent):
        return Unknown(f"{text.source} does not exist")
    line = re.search(rf"^{name}:\s+(\d+) kB$", text.value, re.MULTILINE)
    return Known(int(line[1]) * 1024, text.source) if line else Unknown(f"no {name} in meminfo")
