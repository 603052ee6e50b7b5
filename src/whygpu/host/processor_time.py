"""Measures how a process spent its time: running, waiting for a processor, or blocked.

A process is not hung if it is still running at its time limit, or if the machine did not let it
run. A process that hangs in the driver uses no processor time either, but it does not wait for a
processor. The kernel counts the two separately (Linux, /proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from whygpu.host.processes import family

ENOUGH = 60.0
"""Seconds of processor time after which a framework is not just slow: the slowest measured one,
TensorFlow, needs fewer than 10 for its import and its first operations."""


class ProcessorTime(NamedTuple):
    """The time of a process, its threads and its children together, in seconds."""

    ran: float
    waited: float
    """It could have run, and no processor was free."""


def processor_time(pid: int) -> ProcessorTime | None:
    """The kernel's count so far; None if the kernel does not report it."""
    ran = waited = 0.0
    is_known = False
    for folder in _threads(pid):
        try:
            with open(f"{folder}/schedstat", encoding="ascii") as file:
                numbers = file.read().split()
            ran, waited = ran + int(numbers[0]) / 1e9, waited + int(numbers[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue
        is_known = True
    return ProcessorTime(ran, waited) if is_known else None


def _threads(pid: int) -> Iterator[str]:
    """The kernel's folder of every thread of the process and its descendants."""
    for member in family(pid, thorough=True):
        with suppress(OSError):
            yield from (entry.path for entry in os.scandir(f"/proc/{member}/task"))


LAST_PART = 0.25
"""A fraction of the time limit. Activity in this last part shows that the process is not stuck."""


class Watch:
    """Measures a process at the start of the last part of its time limit, and at the limit."""

    def __init__(self, pid: int, limit: float) -> None:
        self._pid = pid
        self._limit = limit
        self._before: ProcessorTime | None = None
        self.seconds_before_last_part = limit * (1 - LAST_PART)
        self.seconds_of_last_part = limit * LAST_PART

    def begin_last_part(self) -> None:
        """Call this when the last part begins. A second call has no effect."""
        if self._before is None:
            self._before = processor_time(self._pid)

    def at_work(self) -> str:
        """Why it has not finished, if it was still working at its time limit; else empty."""
        spent = processor_time(self._pid)
        if spent is None or not was_at_work(self._limit, self._before, spent):
            return ""
        return in_words(self._limit, spent)


def was_at_work(limit: float, before: ProcessorTime | None, spent: ProcessorTime) -> bool:
    """Whether a process at its time limit was still running, or waiting for a processor.

    `before` is its time at the start of the last part. False if it was blocked for most of that
    part, or if it has run for longer than it can need.
    """
    if before is None or spent.ran >= ENOUGH:
        return False
    busy = (spent.ran + spent.waited) - (before.ran + before.waited)
    return busy > limit * LAST_PART / 2


def in_words(limit: float, spent: ProcessorTime) -> str:
    """Why a process that was working did not finish."""
    if spent.waited > spent.ran:
        return f"{limit:g} s, of which this busy machine let it run for {spent.ran:.1f} s"
    return f"{limit:g} s, and was still working"
