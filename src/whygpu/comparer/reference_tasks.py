"""Recorded lanes against a float64 reference and against each other: the tasks that measure it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any, NamedTuple

from whygpu.comparer.collect import Collected, Job, Progress, environment_of, request
from whygpu.launch.execution import prepare, staged
from whygpu.model.comparison import Lane, Reference
from whygpu.model.policy import DeviceChoice, DevicePolicy
from whygpu.model.work import TaskEnd
from whygpu.work.task_process import run_task, too_much_memory

NO_MODEL = (
    "float64 needs a model whose layers can be computed again, or (function, arguments), and this "
    "is a program"
)


class ReferenceRun(NamedTuple):
    told: Reference
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
    asked = request(
        job,
        lane,
        take_weights=True,
        reference=folder,
        lanes=[_lane(each, local) for each in ran],
    )
    # JAX knows float64 only if it is told so before it starts.
    environ = {**environment_of(lane, job.environ), "JAX_ENABLE_X64": "1"}
    end = _on_cpu("reference", asked, job, environ, progress, "float64 reference", stop)
    sent = end.sent("reference")
    if not sent:
        reason = why_ended(end)
        return ReferenceRun(Reference(False, lane.backend or "", reason))
    told = Reference(sent[0]["ran"], sent[0]["backend"], sent[0]["reason"])
    written = {name: place for name, place in local.items() if os.path.isdir(place)}
    return ReferenceRun(told, folder if told.ran else None, written)


class Found(NamedTuple):
    """What comparing has found, line by line, and how it ended."""

    entries: tuple[dict[str, Any], ...]
    end: TaskEnd | None = None


def differences(
    job: Job, ran: Sequence[Collected], against: ReferenceRun, progress: Progress
) -> Found:
    """Each lane with itself, with the reference, and with each other lane."""
    if not ran:
        return Found(())
    file = os.path.join(job.folder, "found.jsonl")
    asked = {
        "reference": against.outputs,
        "lanes": [_lane(each, against.local) for each in ran],
        "found": file,
    }
    end = _on_cpu("differences", asked, job, job.environ, progress, "comparing")
    return Found(_entries(file), end)


def _entries(file: str) -> tuple[dict[str, Any], ...]:
    """The whole lines of it: a process that died may have left half of one."""
    try:
        with open(file, encoding="ascii") as stream:
            return tuple(json.loads(line) for line in stream if line.endswith("\n"))
    except FileNotFoundError:
        return ()


def _lane(collected: Collected, local: Mapping[str, str]) -> dict[str, Any]:
    name = collected.run.lane.name
    return {"name": name, "runs": list(collected.recorded), "local": local.get(name)}


def _on_cpu(
    task: str,
    asked: Mapping[str, Any],
    job: Job,
    environ: Mapping[str, str],
    progress: Progress,
    words: str,
    stop: Event | None = None,
) -> TaskEnd:
    def tell(message: dict[str, Any]) -> None:
        if message["kind"] == "progress":
            progress(f"{words}: {message['text']}")

    progress(words)
    policy = DevicePolicy(device=DeviceChoice("cpu"))
    prepared = prepare(job.words, policy, environ, repair=False)
    with staged(prepared.plan, environ) as stage:
        return run_task(
            task,
            asked,
            python=job.python,
            environ=stage.environ,
            timeout=job.timeout,
            host_limit=job.host_limit,
            on_message=tell,
            stop=stop,
        )


def notes(found: Found) -> list[str]:
    """What is to be said where comparing itself went wrong."""
    if found.end is None or found.end.ended == "finished":
        return []
    return [f"what was recorded could not be compared: {why_ended(found.end)}"]


def why_ended(end: TaskEnd) -> str:
    return too_much_memory(end) if end.ended == "over-limit" else end.how or end.ended
