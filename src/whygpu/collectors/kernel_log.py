"""Xids since the machine was started, from the kernel log.

Older log files are not read: they also hold Xids of cards that were reset or replaced since then.
"""

from __future__ import annotations

from typing import Any

from whygpu.collectors.driver_answer import bus_address
from whygpu.host.base import Host
from whygpu.model.driver import XidCount
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, Observed, Unknown

DMESG = ("dmesg",)
JOURNAL = (
    *("journalctl", "--dmesg", "--boot", "--no-pager", "--output=short-monotonic"),
    *("--grep", "NVRM: Xid"),
)
TIME_LIMIT = 5.0
"""Seconds. The journal of a machine that has run for months takes about one."""
MOST_KINDS = 256
"""Different pairs of a GPU and a number that are kept."""

_XID = late(
    r"^\[ {0,12}(?P<second>\d{1,12})\.\d{1,9}\][^\n]{0,120}?\bNVRM: Xid "
    r"\((?:PCI:)?(?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})[^)\n]{0,40}\): "
    r"(?P<number>\d{1,4})\b"
)
_START = late(r"\[ {0,12}0\.0{1,9}\]")
"""The first message after the start of the machine."""
_NOT_SHOWN = ("not seeing messages", "No journal files", "Failed to", "denied")


def collect(host: Host) -> Observed[tuple[XidCount, ...]]:
    """Each pair of GPU and number once. Unknown if this user may not read the kernel log."""
    buffer = _printed(host, DMESG)
    if isinstance(buffer, Known) and _START.match(buffer.value):
        return Known(_counted(buffer.value), "dmesg")
    # The buffer is not readable, or its oldest messages were overwritten.
    journal = _printed(host, JOURNAL)
    if isinstance(journal, Known):
        return Known(_counted(journal.value), "journalctl --dmesg --boot")
    if isinstance(buffer, Known):
        return Known(_counted(buffer.value), "dmesg, whose oldest messages are gone")
    return Unknown(f"the kernel log could not be read: {_reason(buffer)}; {_reason(journal)}")


def _printed(host: Host, command: tuple[str, ...]) -> Observed[str]:
    answer = host.run(command, timeout=TIME_LIMIT, env={**host.environ, "LC_ALL": "C"})
    if not isinstance(answer, Known):
        return answer
    ended, name = answer.value, command[0]
    if ended.timed_out:
        return Unknown(f"{name} did not answer within {TIME_LIMIT:g} seconds")
    refused = ended.code != 0 if command is DMESG else not _shows_kernel_messages(ended.stderr)
    if refused:
        return Unknown(ended.stderr.strip().partition("\n")[0] or f"{name} ended with {ended.code}")
    return Known(ended.stdout, name)


def _shows_kernel_messages(errors: str) -> bool:
    """journalctl ends with 1 both if nothing matches and if nothing may be read."""
    return not any(words in errors for words in _NOT_SHOWN)


def _reason(answer: Absent | Unknown) -> str:
    return answer.reason if isinstance(answer, Unknown) else f"{answer.source} is not installed"


def _counted(text: str) -> tuple[XidCount, ...]:
    found: dict[tuple[str, int], XidCount] = {}
    for line in text.splitlines():
        match = _XID.match(line) if "NVRM: Xid" in line else None
        if match is None:
            continue
        key = bus_address(match["address"]), int(match["number"])
        before = found.get(key)
        if before is None and len(found) >= MOST_KINDS:
            continue
        times = before.times + 1 if before else 1
        found[key] = XidCount(*key, times, int(match["second"]))
    return tuple(found.values())


def not_read(devices: Observed[Any], gpus: Observed[Any]) -> Observed[tuple[XidCount, ...]]:
    """What is known without the log. Under WSL, for example, a GPU is not on the PCI bus."""
    if isinstance(gpus, Absent) and not isinstance(devices, Unknown):
        return Absent("an NVIDIA device or driver")
    return Unknown("the kernel log was not read, because no NVIDIA device is seen on the PCI bus")
