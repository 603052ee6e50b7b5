"""What would have fitted, after a run that ran out of memory: an estimate of its last work.

The program left its model without weights (`NotedWork`). The estimate is made in a process of its
own, and held against the room that there was: the limit, less what others held.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.memory.estimator import OnProgress, UnusableWork, Wanted, estimate
from whygpu.model.estimate import MemoryEstimate, MemoryRoom
from whygpu.model.memory_use import FitAnswer, FitEstimate, MemoryEnd, NotedWork, ProcessMemory
from whygpu.model.work import What

TIMEOUT = 30.0
"""Seconds for all of it: the program has ended, and the user waits."""
_SEARCH_SECONDS = 10.0
_UNSURE = 0.15
"""Part of the room that is kept free for the error of the estimate."""
_LONGEST_WHY = 300
_SILENT = "the process ended without reporting what it was doing"
_GAPS = 2
"""Times the arrays, at most: the C library leaves gaps between arrays below 32 MiB, and does not
reuse them for arrays of the same size."""
_TELLS_OF_CPU = ("jax",)
"""Frameworks whose compiler says what a step takes on the CPU; others count arrays alone."""
_ADAM = "No PyTorch optimizer was found; the estimate assumes Adam."


class Room(NamedTuple):
    """The memory that the program could have."""

    bytes: int | None
    """None if no limit is known."""
    beside: int | None
    """What it had beside its arrays; None for what CUDA and its libraries take."""


def worth_asking(end: MemoryEnd) -> bool:
    """Whether a batch that fits would help: a leak fills any room."""
    return end.place in ("gpu", "host") and (end.reason, end.confidence) != ("leak", "certain")


def room_for(end: MemoryEnd, memory: ProcessMemory, gpu_total: int | None) -> Room:
    """`gpu_total` is the memory of the GPU, if there is one."""
    if end.place == "gpu":
        return _room_on_gpu(end, gpu_total)
    total = end.limit
    if end.limit_kind == "computer" and end.free is not None and end.held is not None:
        total = end.free + end.held
    return Room(total, _beside_on_computer(end, memory))


def _room_on_gpu(end: MemoryEnd, gpu_total: int | None) -> Room:
    if end.limit is None:
        return Room(None, None)
    others = end.others or 0
    if end.limit_kind == "gpu":
        return Room(max(0, end.limit - others), None)
    # A share of the GPU counts arrays alone; others matter if the rest is smaller than the share.
    in_the_way = max(0, end.limit - (gpu_total - others)) if gpu_total is not None else 0
    return Room(max(0, end.limit - in_the_way), 0)


def _beside_on_computer(end: MemoryEnd, memory: ProcessMemory) -> int:
    imported = memory.imported
    if imported is None:
        return 0
    if end.limit_kind == "address-space":
        return imported.size
    return imported.data if end.limit_kind == "data" else imported.resident


def fit_estimate(
    end: MemoryEnd,
    work: NotedWork | None,
    room: Room,
    environ: Mapping[str, str],
    on_progress: OnProgress,
    *,
    capability: tuple[int, int] | None = None,
) -> FitEstimate:
    """`environ` is the one that the program was run with."""
    if work is None:
        return FitEstimate("cannot-tell", _SILENT)
    if work.why:
        return FitEstimate("cannot-tell", work.why)
    descriptor, path = tempfile.mkstemp(prefix="whygpu-noted-", suffix=".json")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            noted = ("of", "data", "input", "program", "package", "search_path")
            json.dump({name: getattr(work, name) for name in noted}, file)
        wanted = _wanted(end, work, room, path, capability)
        return judge(end, work, room, estimate(wanted, work.python, environ, on_progress))
    except UsageError as error:
        why = error.reason if isinstance(error, UnusableWork) else str(error)
        return _of(work)._replace(why=_shortened(why))
    finally:
        os.unlink(path)


def _wanted(
    end: MemoryEnd,
    work: NotedWork,
    room: Room,
    path: str,
    capability: tuple[int, int] | None,
) -> Wanted:
    # A lower bound shows which batches do not fit; only a full estimate shows which do.
    sure = room.bytes if _is_least(end, work) else _sure_part(room.bytes)
    return Wanted(
        name=work.name,
        what=What("noted", path),
        batch=work.batch,
        mode=work.mode,
        optimizer=work.optimizer,
        options=work.options,
        mixed=work.mixed,
        backend=work.backend,
        input=work.input,
        room=MemoryRoom("", sure, capability, "") if sure is not None else None,
        beside=room.beside,
        search=end.reason != "leak",
        host=end.place == "host",
        ways=False,
        timeout=TIMEOUT,
        search_seconds=_SEARCH_SECONDS,
    )


def judge(end: MemoryEnd, work: NotedWork, room: Room, estimated: MemoryEstimate) -> FitEstimate:
    """Compare the estimate with what happened. Pure."""
    if estimated.at is None or estimated.total_bytes is None:
        return _of(work)._replace(why=_shortened(estimated.why), seconds=estimated.seconds)
    largest = estimated.largest
    none_fits = largest is None and estimated.next_batch is not None
    least = _is_least(end, work)
    return _of(work)._replace(
        answer=_answer(estimated, room.bytes, least),
        least=least,
        needs=estimated.total_bytes,
        beside=estimated.overhead_bytes,
        room=room.bytes,
        largest=largest.batch if largest is not None else 0 if none_fits else None,
        largest_needs=largest.needs_bytes + estimated.overhead_bytes
        if largest is not None
        else None,
        notes=_notes(work, estimated),
        source=estimated.source,
        seconds=estimated.seconds,
    )


def _shortened(why: str) -> str:
    """The first line of a message, which may be long."""
    return (why.splitlines() or [""])[0][:_LONGEST_WHY]


def _of(work: NotedWork) -> FitEstimate:
    return FitEstimate(
        "cannot-tell",
        model=work.name,
        mode=work.mode,
        optimizer=work.optimizer,
        begun=work.begun,
        batch=work.batch,
    )


def _sure_part(room: int | None) -> int | None:
    return int((1 - _UNSURE) * room) if room is not None else None


def _is_least(end: MemoryEnd, work: NotedWork) -> bool:
    """Whether the estimate counts arrays alone, without what the C library adds."""
    return end.place == "host" and work.backend not in _TELLS_OF_CPU


def _answer(estimated: MemoryEstimate, room: int | None, least: bool) -> FitAnswer:
    assert estimated.at is not None
    if room is None:
        return "no-room-known"
    needs = estimated.at.needs_bytes + estimated.overhead_bytes
    if needs > room:
        return "too-big"
    most = (
        _GAPS * estimated.at.needs_bytes + estimated.overhead_bytes
        if least
        else needs / (1 - _UNSURE)
    )
    return "close" if most > room else "would-have-fitted"


def _notes(work: NotedWork, estimated: MemoryEstimate) -> tuple[str, ...]:
    guessed = work.of == "torch" and work.mode == "train" and work.optimizer is None
    return (_ADAM, *estimated.notes) if guessed else estimated.notes
