"""Starts the tasks that compute a float64 reference and compare what the lanes recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from threading import Event
from typing import NamedTuple

from whygpu.comparer.lane_processes import Collected, Job, Progress, environment_of, subject_of
from whygpu.launch.execution import prepare, staged
from whygpu.model.codec import decode
from whygpu.model.comparison import Lane, Reference
from whygpu.model.policy import DeviceChoice, DevicePolicy
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import (
    DifferencesRequest,
    FoundEntry,
    FoundLine,
    RecordedLane,
    ReferenceMessage,
    ReferenceRequest,
)
from whygpu.work.task_process import run_task, too_much_memory

NO_MODEL = (
    "a float64 reference needs a model whose layers can be computed again, or (function, "
    "arguments), and this is a program"
)


class ReferenceRun(NamedTuple):
    reference: Reference
    outputs: str | None = None
    """The folder of its outputs."""
    local: Mapping[str, str] = {}
    """By lane: the folder of its layers against float64."""


def reference(
    job: Job, ran: Sequence[Collected], progress: Progress, stop: Event | None = None
) -> ReferenceRun:
    """The same model on the CPU in float64, in a process like those of the lanes."""
    if not ran:
        return ReferenceRun(Reference(False, reason="no lane ran"))
    if ran[0].kind not in ("keras", "torch", "pair"):
        return ReferenceRun(Reference(False, reason=NO_MODEL))
    first = ran[0]
    lane = Lane("float64", "cpu", backend=first.backend if first.kind == "keras" else None)  # type: ignore[arg-type]
    folder = os.path.join(job.folder, "float64")
    local = {
        each.run.lane.name: os.path.join(job.folder, f"local-{number}")
        for number, each in enumerate(ran)
    }
    asked = ReferenceRequest(
        subject=subject_of(job, lane, take_weights=True),
        reference=folder,
        lanes=tuple(_recorded(each, local) for each in ran),
    )
    # JAX has float64 only if this is set before it starts.
    environ = {**environment_of(lane, job.environ), "JAX_ENABLE_X64": "1"}
    end = _on_cpu(asked, job, environ, progress, "float64 reference", stop)
    sent = next(iter(end.sent(ReferenceMessage)), None)
    if sent is None:
        return ReferenceRun(Reference(False, lane.backend or "", why_ended(end)))
    found = Reference(sent.ran, sent.backend or "", sent.reason)
    written = {name: place for name, place in local.items() if os.path.isdir(place)}
    return ReferenceRun(found, folder if found.ran else None, written)


class Found(NamedTuple):
    """What the comparing task found, and how it ended."""

    entries: tuple[FoundEntry, ...]
    end: TaskEnd | None = None


def differences(
    job: Job, ran: Sequence[Collected], against: ReferenceRun, progress: Progress
) -> Found:
    """Each lane with itself, with the reference, and with each other lane."""
    if not ran:
        return Found(())
    file = os.path.join(job.folder, "found.jsonl")
    asked = DifferencesRequest(
        lanes=tuple(_recorded(each, against.local) for each in ran),
        reference=against.outputs,
        found=file,
    )
    end = _on_cpu(asked, job, job.environ, progress, "comparing")
    return Found(_entries(file), end)


def _entries(file: str) -> tuple[FoundEntry, ...]:
    """Those of complete lines: a process that died may have left the last one incomplete."""
    try:
        with open(file, encoding="ascii") as stream:
            return tuple(
                decode(FoundLine, {"entry": json.loads(line)}).entry
                for line in stream
                if line.endswith("\n")
            )
    except FileNotFoundError:
        return ()


def _recorded(collected: Collected, local: Mapping[str, str]) -> RecordedLane:
    name = collected.run.lane.name
    return RecordedLane(name, collected.recorded, local.get(name))


def _on_cpu(
    asked: ReferenceRequest | DifferencesRequest,
    job: Job,
    environ: Mapping[str, str],
    progress: Progress,
    stage: str,
    stop: Event | None = None,
) -> TaskEnd:
    progress(stage)
    policy = DevicePolicy(device=DeviceChoice("cpu"))
    prepared = prepare(job.words, policy, environ, repair=False)
    with staged(prepared.plan, environ) as staging:
        return run_task(
            asked,
            python=job.python,
            environ=staging.environ,
            timeout=job.timeout,
            host_limit=job.host_limit,
            on_progress=lambda text: progress(f"{stage}: {text}"),
            stop=stop,
        )


def notes(found: Found) -> list[str]:
    """A note, if comparing itself failed."""
    if found.end is None or found.end.ended == "finished":
        return []
    return [f"the recorded results could not be compared: {why_ended(found.end)}"]


def why_ended(end: TaskEnd) -> str:
    return too_much_memory(end) if end.ended == "over-limit" else end.how or end.ended
