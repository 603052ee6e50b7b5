"""`whygpu compare`: from the name of the work to the report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from threading import Lock
from typing import get_args

from whygpu.comparer import lane_processes, measures, reference_tasks, seeding
from whygpu.comparer.comparison_report import report
from whygpu.comparer.lane_processes import Begun, Collected, Job, Progress
from whygpu.comparer.lanes import default_lanes, parse_lanes
from whygpu.comparer.reference_tasks import ReferenceRun
from whygpu.comparer.side_by_side import Piece, all_done, room_here
from whygpu.comparer.tolerance import Tolerance, parse
from whygpu.errors import Option, UsageError
from whygpu.launch import command, preflight
from whygpu.model.comparison import ComparisonReport, Lane
from whygpu.model.derived import nvidia_gpu
from whygpu.model.observed import Absent, Known
from whygpu.model.report import Report
from whygpu.model.work import WhatKind
from whygpu.work.named_work import parse_what

REFERENCE_IS_LARGER = 3
"""float64 takes twice the memory, and for a while there are two models."""


def compare(
    what: str,
    lanes: str | None,
    *,
    inputs: str | None,
    random: int,
    batch: int | None,
    shapes: str | None,
    tolerance: str,
    repeat: int | None,
    train: int,
    python: str | None,
    timeout: float,
    host_limit: int | None,
    on_progress: Progress,
) -> ComparisonReport:
    """The report on the same work on several lanes. `api.compare` checks and describes these."""
    named = parse_what(what, get_args(WhatKind))
    within = parse(tolerance)
    wanted = parse_lanes(lanes) if lanes is not None else None
    with tempfile.TemporaryDirectory(prefix="whygpu-compare-") as folder:
        on_progress("examining this machine")
        seen = preflight.examine(python, os.environ, proving=False)
        job = Job(
            named,
            _interpreter(seen),
            os.environ,
            _installed(seen),
            folder,
            seed=random,
            batch=batch,
            shapes=shapes,
            inputs=os.path.abspath(inputs) if inputs is not None else None,
            train=train,
            repeat=repeat,
            timeout=timeout,
            host_limit=host_limit,
        )
        _check_keras(job)
        chosen = wanted or _default_lanes(job, seen)
        return _compared(what, job, chosen, within, _one_at_a_time(on_progress))


def _one_at_a_time(progress: Progress) -> Progress:
    """Progress for callers that expect to be called by one thread at a time."""
    lock = Lock()

    def locked(text: str) -> None:
        with lock:
            progress(text)

    return locked


def _interpreter(seen: Report) -> str:
    target = seen.snapshot.target.interpreter
    if isinstance(target, Known):
        return target.value.path
    why = target.source if isinstance(target, Absent) else target.reason
    raise UsageError(f"the Python that should run the work does not start: {why}")


def _installed(seen: Report) -> dict[str, str]:
    found = seen.snapshot.target.frameworks
    if not isinstance(found, Known):
        return {}
    return {each.name: each.version for each in found.value}


def _check_keras(job: Job) -> None:
    if job.what.kind == "model-file" and "keras" not in job.installed:
        raise UsageError(
            f"{job.what.path} is a Keras model, but {job.python} has no Keras; choose an "
            "environment with ",
            Option("python"),
        )


def _default_lanes(job: Job, seen: Report) -> tuple[Lane, ...]:
    named = command.frameworks_named(job.words, job.environ)
    keras = job.what.kind == "model-file" or "keras" in named
    return default_lanes(
        gpu=isinstance(nvidia_gpu(seen.snapshot), Known),
        keras=keras and lane_processes.has_backends(job.installed),
        installed=job.installed,
    )


def _compared(
    what: str, job: Job, lanes: Sequence[Lane], within: Tolerance, progress: Progress
) -> ComparisonReport:
    job, agreed = lane_processes.on_one_backend(job, lanes)
    begun = [lane_processes.begin(job, lane, progress) for lane in lanes]
    _raise_unusable([each.collected for each in begun])
    collected, reference = _completed(job, begun, progress)
    ran = [each for each in collected if each.recorded]
    found = reference_tasks.differences(job, ran, reference, progress)
    result = report(
        what=what,
        inputs=_inputs_in_words(job, ran),
        tolerance=within,
        reference=reference.reference,
        runs=[each.run for each in collected],
        measures=measures.of_entries(found.entries),
        notes=[*reference_tasks.notes(found), *_agreed_words(agreed, ran)],
    )
    return seeding.with_seed_check(result, job, ran, progress)


def _completed(
    job: Job, begun: Sequence[Begun], progress: Progress
) -> tuple[list[Collected], ReferenceRun]:
    """The second runs, and the reference, which is computed from the first runs."""
    ran = [each for each in begun if each.ran]
    second = {
        each.lane.name: lane_processes.again(job, each, progress)
        for each in ran
        if each.is_timed_again
    }
    untimed = [each for each in ran if each.lane.name not in second]
    reference, *others = all_done(
        [_reference_piece(job, ran, progress), *(_second(job, each, progress) for each in untimed)],
        room_here(),
    )
    second.update((each.run.lane.name, each) for each in others)
    return [second.get(each.lane.name, each.collected) for each in begun], reference


def _reference_piece(job: Job, ran: Sequence[Begun], progress: Progress) -> Piece:
    first = [each.collected for each in ran]
    largest = max((each.peak_host_bytes for each in ran if each.lane.device == "cpu"), default=0)
    return Piece(
        lambda stop: reference_tasks.reference(job, first, progress, stop),
        REFERENCE_IS_LARGER * largest,
    )


def _second(job: Job, begun: Begun, progress: Progress) -> Piece:
    return Piece(
        lambda stop: lane_processes.again(job, begun, progress, stop),
        begun.peak_host_bytes,
        begun.lane.device == "gpu",
    )


def _raise_unusable(collected: Sequence[Collected]) -> None:
    """If no lane can use what was named, that is wrong usage; if one cannot, that is a result."""
    started = [each for each in collected if each.run.end != "cannot-run"]
    if started and all(each.unusable for each in started):
        raise UsageError(started[0].unusable)


def _agreed_words(agreed: str, ran: Sequence[Collected]) -> list[str]:
    """Leave out a note that does not concern a program without Keras."""
    return [agreed] if agreed and any(each.kind == "keras" for each in ran) else []


def _inputs_in_words(job: Job, ran: Sequence[Collected]) -> str:
    if job.inputs is not None:
        return os.path.basename(job.inputs)
    if any(each.kind in ("keras", "torch") for each in ran):
        return f"random, seed {job.seed}"
    return f"the program's own, seed {job.seed}"
