"""The GPUs a log tells about: found, passed over, or ready for use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.log import Device, Line
from whygpu.readers.allocations import in_bytes

_READY = re.compile(
    r"Creat(?:ed|ing) (?:TensorFlow )?device \(?(?:\S{0,80}(?:device:|/)?(?i:gpu):\d+)\)?"
    r"(?: with (?P<memory>\d{1,9}) ?MB memory\)?)?:? {0,4}-> "
    r"(?:physical GPU )?\(?device: \d+, name: (?P<name>[^,\n]{1,80})"
    r"(?:[^\n]{0,80}compute capability: (?P<capability>\d+\.\d))?"
)
_IGNORED = re.compile(
    r"Ignoring (?:visible )?gpu device \(device: \d+, name: (?P<name>[^,\n]{1,80})"
    r"[^\n]{0,120}compute capability:? (?P<capability>\d+\.\d)"
)
_FOUND = re.compile(
    r"name: (?P<name>[^\n]{1,60}?)(?: major: (?P<major>\d+) minor: (?P<minor>\d+)"
    r"| computeCapability: (?P<capability>\d+\.\d))"
)
_FREE = re.compile(
    r"total ?Memory: (?P<total>[\d.,]+ ?[KMG]iB) free ?Memory: (?P<free>[\d.,]+ ?[KMG]iB)", re.I
)
_SIZE = re.compile(r"(?P<number>[\d.,]+) ?(?P<unit>[KMG]iB)")


def devices(lines: Sequence[Line]) -> tuple[Device, ...]:
    found: list[Device] = []
    for line in lines:
        text = line.text
        if (match := _READY.search(text)) is not None:
            memory = int(match["memory"]) << 20 if match["memory"] else None
            found.append(
                Device(
                    line.number,
                    "ready",
                    match["name"].strip(),
                    match["capability"] or "",
                    memory,
                    None,
                )
            )
        elif (match := _IGNORED.search(text)) is not None:
            found.append(
                Device(
                    line.number, "ignored", match["name"].strip(), match["capability"], None, None
                )
            )
        elif (match := _FOUND.search(text)) is not None:
            capability = match["capability"] or f"{match['major']}.{match['minor']}"
            found.append(
                Device(line.number, "found", match["name"].strip(), capability, None, None)
            )
        elif found and (match := _FREE.search(text)) is not None:
            found[-1] = found[-1]._replace(
                memory=_bytes(match["free"]), total=_bytes(match["total"])
            )
    return tuple(found)


def _bytes(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return in_bytes(match["number"], match["unit"]) if match else None
