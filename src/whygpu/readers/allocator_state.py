"""Reads what TensorFlow reports about the memory of a GPU: its limit, and requests that it refuses.

The limit is in the line about a new device, which is information, and in the statistics after a
refusal. Before a refusal, the allocator waits up to 10 seconds for memory that others may free:

    Created device /job:localhost/replica:0/task:0/device:GPU:0 with 3072 MB memory: ...
    Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.89GiB (rounded to 2029430784)
    Limit:                      3221225472            (TensorFlow 1.15; newer ones: 3.00GiB)
    InUse:                      1522303744
"""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late
from whygpu.model.shortage import AllocatorState, HopelessRequest
from whygpu.model.units import logged_size
from whygpu.tables.out_of_memory import ALLOCATOR_IN_USE, ALLOCATOR_LIMIT

_NUMBER = r"(?P<number>\d[\d.]{0,20})(?P<unit>[KMGT]i?B|B)?"
_CREATED = late(
    r"\bCreated (?:TensorFlow )?device \(?/job:\S{1,100}?/device:GPU:(?P<gpu>\d{1,3}) with "
    r"(?P<megabytes>\d{1,12}) MB memory"
)
_REFUSED = late(
    r"Allocator \(GPU_(?P<gpu>\d{1,3})_bfc\) ran out of memory trying to allocate "
    rf"{_NUMBER}(?: ?\(rounded to (?P<rounded>\d{{1,20}})\))?"
)
_NO_FAILURE = "freed_by_count"
"""In the message for a caller that can do with less."""
_LIMIT = late(rf"^{ALLOCATOR_LIMIT}{_NUMBER}")
_IN_USE = late(rf"^{ALLOCATOR_IN_USE}{_NUMBER}")
_WORDS = (b"ran out of memory", b"Limit:", b" MB memory")
"""Every line that matters has one of them."""
_LONGEST_LINE = 4096


def allocator_states(text: str) -> tuple[AllocatorState, ...]:
    """The limit of each GPU, and at each refusal also what was in use of it, in their order."""
    found: list[AllocatorState] = []
    gpu: int | None = None
    for line in text.splitlines():
        created = _CREATED.search(line)
        if created:
            found.append(AllocatorState(*_size_of(created), None))
            continue
        refused = _refused(line)
        if refused:
            gpu = int(refused["gpu"])
        if gpu is None:
            continue
        limit, in_use = _LIMIT.search(line), _IN_USE.search(line)
        if limit:
            found.append(AllocatorState(gpu, _bytes(limit) or 0, None))
        elif in_use and found and found[-1].gpu == gpu:
            found[-1] = found[-1]._replace(in_use=_bytes(in_use))
            gpu = None
    return tuple(found)


class Refusals:
    """Finds a request that is larger than the whole limit, in output as it arrives."""

    def __init__(self, limit: int | None = None) -> None:
        """`limit` is the one that is in force, if it is known before."""
        self._limit = limit
        self._limits: dict[int, int] = {}
        self._line = b""
        self._asked: tuple[int, int] | None = None

    def feed(self, data: bytes) -> HopelessRequest | None:
        """The first such request in what has arrived up to now; None if there is none."""
        *lines, rest = (self._line + data).split(b"\n")
        self._line = rest[-_LONGEST_LINE:]
        for line in lines:
            if any(word in line for word in _WORDS):
                self._read(line[-_LONGEST_LINE:].decode("utf-8", "replace"))
                found = self._hopeless()
                if found is not None:
                    return found
        return None

    def _read(self, line: str) -> None:
        created, refused, limit = _CREATED.search(line), _refused(line), _LIMIT.search(line)
        if created:
            gpu, size = _size_of(created)
            self._limits[gpu] = size
        elif refused:
            asked = int(refused["rounded"]) if refused["rounded"] else _bytes(refused)
            self._asked = (int(refused["gpu"]), asked or 0)
        elif limit and self._asked is not None:
            self._limits[self._asked[0]] = _bytes(limit) or 0

    def _hopeless(self) -> HopelessRequest | None:
        if self._asked is None:
            return None
        gpu, asked = self._asked
        known = [each for each in (self._limits.get(gpu), self._limit) if each]
        limit = min(known, default=None)
        return HopelessRequest(gpu, asked, limit) if limit and asked > limit else None


def _refused(line: str) -> re.Match[str] | None:
    return None if _NO_FAILURE in line else _REFUSED.search(line)


def _size_of(created: re.Match[str]) -> tuple[int, int]:
    return int(created["gpu"]), int(created["megabytes"]) << 20


def _bytes(match: re.Match[str]) -> int | None:
    """Without a unit, these lines count bytes."""
    return logged_size(match["number"], match["unit"] or "")
