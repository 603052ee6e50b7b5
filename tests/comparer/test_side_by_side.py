"""Which processes may run beside which, and that none outlives a failure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Barrier, Event, Lock
from typing import Any

import pytest

from tests.patience import PATIENCE
from whygpu.comparer.side_by_side import Piece, Room, all_done, room_here
from whygpu.model.task_wire import TrialRequest
from whygpu.model.work import What
from whygpu.work.task_process import run_task

WIDE = Room(cores=8, host_bytes=1000)


class Busy:
    """Pieces that tell which of them were at work at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._now: set[str] = set()
        self.together: set[frozenset[str]] = set()

    def piece(
        self, name: str, host_bytes: int = 1, on_gpu: bool = False, meeting: Barrier | None = None
    ) -> Piece:
        def do(stop: Event) -> str:
            with self._lock:
                self._now.add(name)
                self.together.add(frozenset(self._now))
            stop.wait(0.02)
            if meeting is not None:
                meeting.wait()
            with self._lock:
                self._now.remove(name)
            return name

        return Piece(do, host_bytes, on_gpu)


def test_results_come_in_the_order_of_the_pieces_and_run_at_once() -> None:
    meeting = Barrier(3, timeout=PATIENCE)

    def piece(name: str) -> Piece:
        def do(stop: Event) -> str:
            meeting.wait()
            return name

        return Piece(do, 1)

    assert all_done([piece(name) for name in "abc"], WIDE) == ["a", "b", "c"]
    assert all_done([], WIDE) == []


def test_a_gpu_is_used_by_one_at_a_time_and_the_cpu_beside_it() -> None:
    busy = Busy()
    meeting = Barrier(2, timeout=PATIENCE)
    pieces = [busy.piece("gpu0", on_gpu=True, meeting=meeting)]
    pieces += [busy.piece(f"gpu{n}", on_gpu=True) for n in (1, 2)]
    pieces.append(busy.piece("cpu", meeting=meeting))
    assert all_done(pieces, WIDE) == ["gpu0", "gpu1", "gpu2", "cpu"]
    assert all(sum(name.startswith("gpu") for name in each) <= 1 for each in busy.together)
    assert any({"cpu"} < each for each in busy.together)


@pytest.mark.parametrize("room", [Room(1, 1000), Room(8, 150), Room(8, 0)])
def test_without_cores_or_memory_they_run_one_by_one(room: Room) -> None:
    busy = Busy()
    assert all_done([busy.piece(name, 100) for name in "abc"], room) == ["a", "b", "c"]
    assert all(len(each) == 1 for each in busy.together)


def test_what_ends_one_ends_all(tmp_path: Path) -> None:
    script = tmp_path / "user.py"
    script.write_text("import time\ndef step(batch_size):\n    time.sleep(600)\n")
    begun = Event()
    ends: list[Any] = []

    def sleeps(stop: Event) -> None:
        what = What("function", str(script), "step")
        ends.append(
            run_task(
                TrialRequest(what, pickled=None, batch=1),
                python=sys.executable,
                environ=dict(os.environ),
                timeout=PATIENCE,
                on_progress=lambda text: begun.set(),
                stop=stop,
            )
        )

    def fails(stop: Event) -> None:
        begun.wait(PATIENCE)
        raise ValueError("it went wrong")

    with pytest.raises(ValueError, match="it went wrong"):
        all_done([Piece(sleeps, 1), Piece(fails, 1)], WIDE)
    assert [(end.ended, end.how) for end in ends] == [("signal", "SIGKILL")]


def test_the_room_of_this_machine_is_known() -> None:
    here = room_here()
    assert here.cores >= 1
    assert here.host_bytes > 0
