"""Memory that was asked for and not given, with the log's own numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from whygpu.model.log import Allocation, Line

_UNITS = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gib": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
    "tib": 1 << 40,
}
_SIZE = r"(?P<{}>\d[\d.,]{{0,20}}) ?(?P<{}_unit>[KMGT]?i?[bB](?:ytes)?|[KMGT]|bytes)?"


def _size(name: str) -> str:
    return _SIZE.format(name, name)


_TORCH = re.compile(
    rf"(?:CUDA|HIP|MPS backend|XPU) out of memory\. Tried to allocate {_size('asked')}"
    rf"(?P<rest>[^\n]{{0,600}})"
)
_TORCH_PARTS = {
    "total": re.compile(rf"{_size('total')} total capacity|total capacity of {_size('total2')}"),
    "held": re.compile(
        rf"{_size('held')} already allocated|{_size('held2')} is allocated by PyTorch"
    ),
    "free": re.compile(rf"{_size('free')} (?:is )?free"),
    "reserved": re.compile(rf"{_size('reserved')} (?:reserved in total|cached)"),
    "unused": re.compile(rf"{_size('unused')} is reserved by PyTorch but unallocated"),
}
_REFUSED: tuple[tuple[re.Pattern[str], bool], ...] = (
    # TensorFlow's allocator: the first form goes on without, the second does not.
    (
        re.compile(
            rf"[Rr]an out of memory trying to allocate {_size('asked')}[^\n]{{0,80}}with freed_by_count"
        ),
        False,
    ),
    (re.compile(rf"[Rr]an out of memory trying to allocate {_size('asked')}"), True),
    (
        re.compile(
            r"OOM when allocating tensor (?:with|of) shape ?(?P<shape>\[[\d,]{0,80}\])"
            r"(?: and type \w{1,20})?(?: on (?P<device>\S{1,120}))?(?: by allocator (?P<allocator>\w{1,40}))?"
        ),
        True,
    ),
    # XLA and JAX
    (
        re.compile(
            rf"(?:RESOURCE_EXHAUSTED: |Resource exhausted: )?Out of memory (?:while )?(?:trying to )?"
            rf"allocat(?:e|ing) {_size('asked')}"
        ),
        True,
    ),
    (re.compile(rf"Failed to allocate request for {_size('asked')}"), True),
    # The driver refuses a reservation; TensorFlow asks for less.
    (
        re.compile(rf"failed to allocate {_size('asked')} \(\d{{1,20}} bytes\) from device"),
        False,
    ),
    (re.compile(rf"failed to alloc {_size('asked')} on host"), False),
    (re.compile(rf"could not allocate pinned host memory of size: {_size('asked')}"), False),
    (re.compile(r"cudaErrorMemoryAllocation out of memory|CUDA error: out of memory"), True),
    (re.compile(r"cuda runtime error \(2\) : out of memory|error=2 : out of memory"), True),
    (
        re.compile(
            rf"(?:Unable to allocate|DefaultCPUAllocator: (?:can't|not enough memory: you tried to)"
            rf" allocate(?: memory: you tried to allocate)?) {_size('asked')}"
        ),
        True,
    ),
)
_HOST = re.compile(
    r"on host|pinned host|allocator cpu|device:CPU|CPUAllocator|numpy|Unable to allocate \d"
)


def allocations(lines: Sequence[Line]) -> tuple[Allocation, ...]:
    return tuple(found for line in lines for found in _of_line(line))


def _of_line(line: Line) -> Iterator[Allocation]:
    text = line.text
    if "llocat" not in text and "emory" not in text and "OOM" not in text and "alloc" not in text:
        return
    match = _TORCH.search(text)
    if match:
        yield _torch(line, match)
        return
    for pattern, final in _REFUSED:
        match = pattern.search(text)
        if match:
            groups = match.groupdict()
            asked = groups.get("asked")
            place: Literal["gpu", "host"] = "host" if _HOST.search(text) else "gpu"
            yield Allocation(
                line.number,
                place,
                final=final,
                requested=in_bytes(asked, groups.get("asked_unit")) if asked else None,
                shape=groups.get("shape") or "",
            )
            return


def _torch(line: Line, match: re.Match[str]) -> Allocation:
    sizes: dict[str, int | None] = {}
    for name, pattern in _TORCH_PARTS.items():
        part = pattern.search(match["rest"])
        groups = part.groupdict() if part else {}
        value = groups.get(name) or groups.get(f"{name}2")
        unit = groups.get(f"{name}_unit") or groups.get(f"{name}2_unit")
        sizes[name] = in_bytes(value, unit) if value else None
    held, unused = sizes["held"], sizes["unused"]
    reserved = sizes["reserved"]
    if reserved is None and held is not None and unused is not None:
        reserved = held + unused
    return Allocation(
        line.number,
        "gpu",
        final=True,
        requested=in_bytes(match["asked"], match["asked_unit"]),
        free=sizes["free"],
        total=sizes["total"],
        held=held,
        reserved=reserved,
    )


def in_bytes(number: str, unit: str | None) -> int | None:
    """1.57 and GiB, 8,00 and GiB, 542572544 and nothing."""
    cleaned = number.rstrip(".,")
    if cleaned.count(",") == 1 and "." not in cleaned and len(cleaned.partition(",")[2]) != 3:
        cleaned = cleaned.replace(",", ".")
    try:
        value = float(cleaned.replace(",", ""))
    except ValueError:
        return None
    return int(value * _UNITS.get((unit or "").lower(), 1))
