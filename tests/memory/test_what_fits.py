"""What an estimate says of work that memory ran out on, held against what happened."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.cases import each
from whygpu.memory.what_fits import Room, fit_estimate, judge, room_for, worth_asking
from whygpu.model.estimate import BatchMemory, MemoryEstimate
from whygpu.model.memory_use import (
    FitEstimate,
    Footprint,
    LimitKind,
    MemoryEnd,
    NotedWork,
    ProcessMemory,
)

GIB = 1 << 30

END = MemoryEnd(
    place="gpu",
    device="gpu:0",
    of="torch",
    asked=2 * GIB,
    free=GIB,
    limit=16 * GIB,
    limit_is="the GPU",
    limit_kind="gpu",
    held=9 * GIB,
    unused=0,
    others=4 * GIB,
    holders=(),
    reason="too-big",
    confidence="likely",
    because="",
)


def _exactly(batch: int, size: int) -> BatchMemory:
    return BatchMemory(batch, size, size, size, size, "backward", ())


ON_CPU = END._replace(place="host", device="host", others=None)
WORK = NotedWork(of="torch", name="Net", batch=64, optimizer="sgd")
ESTIMATE = MemoryEstimate(
    what="Net",
    framework="torch",
    mode="train",
    mixed=False,
    verdict="does-not-fit",
    why="",
    at=_exactly(64, 14 * GIB),
    overhead_bytes=GIB,
    room=None,
    largest=_exactly(40, 9 * GIB),
    next_batch=41,
    others=(),
    notes=("the loss is assumed to be a cross-entropy",),
    source="PyTorch",
    traceback="",
    seconds=3.0,
)


def taking(needs: int, beside: int = 0) -> MemoryEstimate:
    at = _exactly(64, needs)
    return ESTIMATE._replace(at=at, overhead_bytes=beside)


def test_the_whole_answer() -> None:
    assert judge(END, WORK, Room(12 * GIB, None), ESTIMATE) == FitEstimate(
        answer="too-big",
        model="Net",
        mode="train",
        optimizer="sgd",
        batch=64,
        needs=15 * GIB,
        beside=GIB,
        room=12 * GIB,
        largest=40,
        largest_needs=10 * GIB,
        notes=("the loss is assumed to be a cross-entropy",),
        source="PyTorch",
        seconds=3.0,
    )


@each(
    ("needs", "room", "answer"),
    [
        (10 * GIB + 1, 10 * GIB, "too-big"),
        (10 * GIB, 10 * GIB, "close"),
        (86 * GIB, 100 * GIB, "close"),
        (84 * GIB, 100 * GIB, "would-have-fitted"),
        (84 * GIB, None, "no-room-known"),
    ],
)
def test_an_estimate_is_only_so_exact(needs: int, room: int | None, answer: str) -> None:
    assert judge(END, WORK, Room(room, None), taking(needs)).answer == answer


@each(
    ("arrays", "backend", "answer", "least"),
    [
        (10 * GIB, None, "too-big", True),
        (5 * GIB, None, "close", True),
        (4 * GIB, None, "would-have-fitted", True),
        # XLA's compiler tells what it takes on the CPU.
        (5 * GIB, "jax", "would-have-fitted", False),
        (5 * GIB, "tensorflow", "close", True),
    ],
)
def test_on_the_computer_arrays_are_the_least(
    arrays: int, backend: str | None, answer: str, least: bool
) -> None:
    """The heap may take as much again; what the frameworks have is there once."""
    estimate = taking(arrays, beside=GIB)
    found = judge(ON_CPU, WORK._replace(backend=backend), Room(10 * GIB, GIB), estimate)
    assert (found.answer, found.least) == (answer, least)


@pytest.mark.parametrize(
    ("changes", "largest"),
    [
        ({}, 40),
        ({"largest": None, "next_batch": 1}, 0),
        ({"largest": None, "next_batch": None}, None),
    ],
    ids=["found", "not-even-one", "not-looked-for"],
)
def test_the_largest_batch(changes: dict[str, Any], largest: int | None) -> None:
    assert judge(END, WORK, Room(GIB, None), ESTIMATE._replace(**changes)).largest == largest


def test_what_could_not_be_estimated_says_why() -> None:
    estimate = ESTIMATE._replace(at=None, why="it took longer than 30 s")
    found = judge(END, WORK, Room(GIB, None), estimate)
    assert (found.answer, found.why, found.needs) == (
        "cannot-tell",
        "it took longer than 30 s",
        None,
    )


@each(
    ("work", "note"),
    [
        (WORK, False),
        (WORK._replace(optimizer=None), True),
        (WORK._replace(optimizer=None, mode="infer"), False),
        (WORK._replace(optimizer=None, of="keras"), False),
    ],
)
def test_a_note_says_that_an_optimizer_is_assumed(work: NotedWork, note: bool) -> None:
    notes = judge(END, work, Room(GIB, None), ESTIMATE).notes
    assert any("assumes Adam" in each for each in notes) == note


@each(
    ("end", "total", "expected"),
    [
        (END, None, Room(12 * GIB, None)),
        (END._replace(others=None), None, Room(16 * GIB, None)),
        (END._replace(others=20 * GIB), None, Room(0, None)),
        (END._replace(limit=None), 16 * GIB, Room(None, None)),
        # Its own share of a GPU counts arrays alone; others matter where the rest is too small.
        (END._replace(limit=4 * GIB, limit_kind="policy"), 16 * GIB, Room(4 * GIB, 0)),
        (END._replace(limit=14 * GIB, limit_kind="policy"), 16 * GIB, Room(12 * GIB, 0)),
        (END._replace(limit=14 * GIB, limit_kind="policy"), None, Room(14 * GIB, 0)),
    ],
)
def test_room_on_a_gpu(end: MemoryEnd, total: int | None, expected: Room) -> None:
    assert room_for(end, ProcessMemory(), total) == expected


@each(
    ("kind", "expected"),
    [
        ("address-space", Room(16 * GIB, 3)),
        ("data", Room(16 * GIB, 2)),
        ("control-group", Room(16 * GIB, 1)),
        # What others have of it is not for this program.
        ("computer", Room(10 * GIB, 1)),
    ],
)
def test_room_on_the_computer(kind: LimitKind, expected: Room) -> None:
    memory = ProcessMemory(imported=Footprint(size=3, resident=1, data=2))
    assert room_for(ON_CPU._replace(limit_kind=kind), memory, None) == expected
    assert room_for(ON_CPU, ProcessMemory(), None).beside == 0


@each(
    ("changes", "worth"),
    [
        ({}, True),
        ({"reason": "leak", "confidence": "likely"}, True),
        ({"reason": "leak", "confidence": "certain"}, False),
        ({"place": "shared-memory"}, False),
        ({"place": "host", "reason": "unknown"}, True),
    ],
)
def test_nobody_waits_for_what_cannot_help(changes: dict[str, Any], worth: bool) -> None:
    assert worth_asking(END._replace(**changes)) == worth


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (None, "the process ended without reporting what it was doing"),
        (NotedWork(why="a JAX function cannot be"), "a JAX function cannot be"),
        (WORK._replace(python="/nowhere/python"), "/nowhere/python: No such file or directory"),
        (
            WORK._replace(python=sys.executable, of="keras", data="{}"),
            "ModuleNotFoundError: No module named 'keras'",
        ),
    ],
    ids=["ended", "not-noted", "no-python", "no-framework"],
)
def test_why_there_is_no_estimate(work: NotedWork | None, why: str) -> None:
    found = fit_estimate(END, work, Room(GIB, None), {}, lambda text: None)
    assert (found.answer, found.why) == ("cannot-tell", why)
