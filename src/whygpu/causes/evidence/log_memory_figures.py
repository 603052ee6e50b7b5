"""GPU memory figures of a log: what was requested, what was free, and which process held the
rest."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Allocation, Log
from whygpu.model.units import logged_size
from whygpu.tables.gpu_memory import sizes_of
from whygpu.tables.out_of_memory import ALLOCATOR_IN_USE, ALLOCATOR_LIMIT, bytes_of_shape

_AMOUNT = r"(?P<number>\d{1,15}(?:\.\d{1,3})?) ?(?P<unit>[KMGT]iB)?"
_LIMIT = late(rf"\b(?:{ALLOCATOR_LIMIT}|memory_limit_: ){_AMOUNT}")
_IN_USE = late(rf"\b{ALLOCATOR_IN_USE}{_AMOUNT}")
_REGIONS = late(rf"total_region_allocated_bytes_: {_AMOUNT}")
_ROUND = 512 << 20
_MOST_RECORDS = 8
"""The most records of one line that are examined."""


class Figures(NamedTuple):
    requested: int | None
    free: int | None
    total_least: int | None
    total_most: int | None
    held: int | None
    reserved: int | None
    free_at_start: int | None
    limit: int | None
    in_use: int | None
    regions: int | None


def figures_of(log: Log, refused: Sequence[Allocation]) -> Figures:
    telling = max(refused, key=lambda a: (a.total is not None, a.requested or 0), default=None)
    asked = [size for a in refused if (size := a.requested or size_of_shape(log, a)) is not None]
    free_at_start, least, most = _at_start(log)
    if telling is not None and telling.total:
        least = most = telling.total
        asked = [telling.requested] if telling.requested else asked
    return Figures(
        requested=max(asked, default=None),
        free=telling.free if telling else None,
        total_least=least,
        total_most=most,
        held=telling.held if telling else None,
        reserved=telling.reserved if telling else None,
        free_at_start=free_at_start,
        limit=_number(log, _LIMIT),
        in_use=_number(log, _IN_USE),
        regions=_number(log, _REGIONS),
    )


def _at_start(log: Log) -> tuple[int | None, int | None, int | None]:
    """The free memory of the first GPU, and the least and the most that it can have in all.

    The free memory shows more than the size of TensorFlow's device: a program can limit that size,
    usually to a round number.
    """
    for device in log.devices:
        if device.memory is not None and device.total and device.capability:
            return device.memory, device.total, device.total
    for device in log.devices:
        if device.event == "ready" and device.memory is not None:
            least, most = sizes_of(device.name) or (None, None)
            limited = device.memory % _ROUND == 0
            return None if limited else device.memory, least, most
    return None, None, None


def _number(log: Log, pattern: re.Pattern[str]) -> int | None:
    match = log.first(pattern)
    if match is None:
        return None
    # TensorFlow's allocator prints plain bytes, and in newer releases a unit.
    return logged_size(match.groups["number"] or "", match.groups["unit"] or "")


def size_of_shape(log: Log, allocation: Allocation) -> int | None:
    return bytes_of_shape(allocation.shape, text_of(log, allocation))


def text_of(log: Log, allocation: Allocation) -> str:
    """The whole line; a progress bar may be its first record."""
    start = bisect_left(log.lines, allocation.line, key=lambda line: line.number)
    records = log.lines[start : start + _MOST_RECORDS]
    return " ".join(line.text for line in records if line.number == allocation.line)
