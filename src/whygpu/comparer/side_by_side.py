"""Runs processes that measure no time in parallel, if the machine has room for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import Any, NamedTuple

from whygpu.collectors import memory
from whygpu.host.local import LocalHost
from whygpu.host.systems import cores
from whygpu.model.observed import Known


class Piece(NamedTuple):
    """Work in a process of its own. `do` returns soon after its event is set."""

    do: Callable[[Event], Any]
    host_bytes: int
    """What it is expected to need."""
    on_gpu: bool = False


class Room(NamedTuple):
    cores: int
    host_bytes: int

    def takes(self, piece: Piece, beside: Sequence[Piece]) -> bool:
        """Whether it may start beside those that run. If none runs, it may."""
        if not beside:
            return True
        if piece.on_gpu and any(each.on_gpu for each in beside):
            # They would take each other's memory, and their autotuning would measure wrong times.
            return False
        needed = piece.host_bytes + sum(each.host_bytes for each in beside)
        return len(beside) < self.cores and needed <= self.host_bytes


def room_here() -> Room:
    """Of this machine, within control groups. If memory is unknown, nothing runs in parallel."""
    available = memory.collect(LocalHost()).available_bytes
    host_bytes = available.value if isinstance(available, Known) else 0
    return Room(cores(), host_bytes)


def all_done(pieces: Sequence[Piece], room: Room) -> list[Any]:
    """The results, in the order of the pieces. An exception in one of them, or here, stops all."""
    waiting = list(range(len(pieces)))
    running: dict[Future[Any], int] = {}
    results: dict[int, Any] = {}
    stop = Event()
    with ThreadPoolExecutor(max_workers=max(1, len(pieces))) as pool:
        try:
            while waiting or running:
                for number in list(waiting):
                    if room.takes(pieces[number], [pieces[each] for each in running.values()]):
                        waiting.remove(number)
                        running[pool.submit(pieces[number].do, stop)] = number
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    results[running.pop(ended)] = ended.result()
        except BaseException:
            stop.set()
            raise
    return [results[number] for number in range(len(pieces))]
