"""How a process spent its time: running, waiting for a processor, or standing still.

A process that is still running when its time is up, or that the machine did not let run, is not
hung. A process that hangs in the driver uses no processor time either, but it does not wait for a
processor: the kernel counts the two apart (Linux, /proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from whygpu.host.processes import family

ENOUGH = 60.0
"""Seconds of processor time after which no framework is merely slow: the slowest that was
measured, TensorFlow, needs fewer than 10 for its import and its first operations."""


class ProcessorTime(NamedTuple):
    """Of a process, its threads and its children together, in seconds."""

    ran: float
    waited: float
    """It could have run, and no processor was free."""


def processor_time(pid: int) -> ProcessorTime | None:
    """What the kernel has counted so far; None where it does not tell."""
    ran = waited = 0.0
    told = False
    for folder in _threads(pid):
        try:
            with open(f"{folder}/schedstat", encoding="ascii") as file:
                numbers = file.read().split()
            ran, waited = ran + int(numbers[0]) / 1e9, waited + int(numbers[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue
        told = True
    return ProcessorTime(ran, waited) if told else None


def _threads(pid: int) -> Iterator[str]:
    """The kernel's folder of every thread of the process and its descendants."""
    for member in family(pid, thorough=True):
        with suppress(OSError):
            yield from (entry.path for entry in os.scandir(f"/proc/{member}/task"))


LAST_PART = 0.25
"""Of the limit: what a process does then tells whether it still goes on."""


class Watch:
    """Looks at a process when the last part of its time begins, and when its time is up."""

    def __init__(self, pid: int, limit: float) -> None:
        self._pid = pid
        self._limit = limit
        self._before: ProcessorTime | None = None
        self.seconds_before_last_part = limit * (1 - LAST_PART)
        self.seconds_of_last_part = limit * LAST_PART

    def begin_last_part(self) -> None:
        """To be called when it begins; a second call changes nothing."""
        if self._before is None:
            self._before = processor_time(self._pid)

    def at_work(self) -> str:
        """Why it is not finished, where its time is up and it was still at work; else empty."""
        spent = processor_time(self._pid)
        if spent is None or not was_at_work(self._limit, self._before, spent):
            return ""
        return in_words(self._limit, spent)


def was_at_work(limit: float, before: ProcessorTime | None, spent: ProcessorTime) -> bool:
    """Whether a process whose time is up was still running, or waiting for its turn to run.

    `before` is what it had spent when the last part of its time began. Not at work is one that
    stood still for most of that part, or that has run for longer than it can need.
    """
    if before is None or spent.ran >= ENOUGH:
        return False
    busy = (spent.ran + spent.waited) - (before.ran + before.waited)
    return busy > limit * LAST_PART / 2


def in_words(limit: float, spent: ProcessorTime) -> str:
    """Why a process that was at work did not finish."""
    if spent.waited > spent.ran:
        return f"{limit:g} s, of which this busy machine let it run for {spent.ran:.1f} s"
    return f"{limit:g} s, and was still at work"
