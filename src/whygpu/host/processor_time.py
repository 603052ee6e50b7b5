"""How a process spent its time: running, waiting for a processor, or standing still.

A process that is still running when its time is up, or that the machine did not let run, is not
hung. A process that hangs in the driver uses no processor time either, but it does not wait for a
processor: the kernel counts the two apart (Linux, /proc/PID/task/TID/schedstat).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

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
    for folder in _threads(pid, set()):
        try:
            with open(f"{folder}/schedstat", encoding="ascii") as file:
                numbers = file.read().split()
            ran, waited = ran + int(numbers[0]) / 1e9, waited + int(numbers[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue
        told = True
    return ProcessorTime(ran, waited) if told else None


def _threads(pid: int, seen: set[int]) -> Iterator[str]:
    seen.add(pid)
    folder = f"/proc/{pid}/task"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        yield f"{folder}/{name}"
        try:
            with open(f"{folder}/{name}/children", encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
        except (OSError, ValueError):
            continue
        for child in children:
            if child not in seen:
                yield from _threads(child, seen)


def was_at_work(wall: float, spent: ProcessorTime | None) -> bool:
    """Whether a process whose time was up was still running, or waiting for its turn to run.

    Not where it stood still for most of its time, nor where it ran for longer than it can need.
    """
    if spent is None or spent.ran >= ENOUGH:
        return False
    return spent.ran + spent.waited > wall / 2


def in_words(wall: float, spent: ProcessorTime) -> str:
    """Why a process that was at work did not finish."""
    if spent.waited > spent.ran:
        return f"{wall:g} s, of which this busy machine let it run for {spent.ran:.1f} s"
    return f"{wall:g} s, and was still at work"
