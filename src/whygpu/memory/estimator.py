"""Estimates a model's memory: the target traces the work, and we compare it with a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, NamedTuple

from whygpu.errors import Option, UsageError
from whygpu.model.estimate import (
    BatchMemory,
    FitVerdict,
    MemoryEstimate,
    MemoryPart,
    MemoryRoom,
    Mode,
    OtherWay,
)
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import EstimateMessage, EstimateRequest, LargestMessage, WayMessage
from whygpu.model.work import What
from whygpu.tables.process_overheads import FRAMEWORKS, overhead

DEFAULT_TIMEOUT = 900.0
BACKENDS = ("torch", "jax", "tensorflow")
CLOSE = 0.05
"""Part of the room: if less is left or missing, the estimate is not certain to be right."""
_QUIET = {
    # An estimate must not take a GPU's memory, or compile a program twice.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "TORCHDYNAMO_DISABLE": "1",
    "KERAS_TORCH_DEVICE": "cpu",
}

OnProgress = Callable[[str], None]
_UNSURE = "the estimate is not accurate enough"


class UnusableWork(UsageError):
    """What the user named cannot be estimated; `reason` is the message without its name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.reason = reason


class Wanted(NamedTuple):
    """What to estimate, and for which memory."""

    name: str
    """The model as the user calls it."""
    what: What
    batch: int
    mode: Mode = "train"
    optimizer: str | None = None
    mixed: bool = False
    backend: str | None = None
    input: str | None = None
    room: MemoryRoom | None = None
    no_room: str = ""
    """Why the memory of this machine's GPU is not known; empty if it is, or if there is no GPU."""
    search: bool = True
    """Look for the largest batch that fits."""
    ways: bool = True
    """Look for other ways to fit, if it does not."""
    options: Mapping[str, Any] | None = None
    """Options of a PyTorch optimizer, if they are not its defaults."""
    host: bool = False
    """It runs on the CPU. Only XLA's compiler knows the difference; others count arrays as on a
    GPU."""
    beside: int | None = None
    """What the process has beside its arrays; None for what CUDA and its libraries take."""
    timeout: float = DEFAULT_TIMEOUT
    host_limit: int | None = None
    """Main memory that the estimating process may hold; None for what the machine can spare."""
    search_seconds: float | None = None
    """After this time, the largest batch that is known to fit is the answer."""

    def beside_arrays(self, framework: str) -> int:
        return self.beside if self.beside is not None else overhead(framework, self.mode)


def estimate(
    wanted: Wanted,
    python: str,
    environ: Mapping[str, str],
    on_progress: OnProgress,
    *,
    stop: Event | None = None,
) -> MemoryEstimate:
    """UsageError if what is named cannot be used like this. Another thread can set `stop`."""
    from whygpu.work.task_process import run_task

    check(wanted)
    began = time.monotonic()
    end = run_task(
        request_of(wanted),
        python=python,
        environ=variables_of(wanted, environ),
        timeout=wanted.timeout,
        host_limit=wanted.host_limit,
        on_progress=on_progress,
        stop=stop,
    )
    found = judge(wanted, end)
    return found._replace(seconds=round(time.monotonic() - began, 3))


def check(wanted: Wanted) -> None:
    """UsageError for impossible numbers and names."""
    if wanted.batch < 1:
        raise UsageError("expected 1 or more", option="batch_size", value=wanted.batch)
    if not wanted.timeout > 0:
        raise UsageError("expected more than 0 seconds", option="timeout", value=wanted.timeout)
    if wanted.backend is not None and wanted.backend not in BACKENDS:
        raise UsageError(f"expected {', '.join(BACKENDS)}", option="backend", value=wanted.backend)
    if wanted.mode == "infer" and wanted.optimizer is not None:
        raise UsageError(
            "inference has no optimizer; omit it, or use ",
            Option("train", True),
            option="optimizer",
            value=wanted.optimizer,
        )


def variables_of(wanted: Wanted, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process that estimates."""
    backend = {} if wanted.backend is None else {"KERAS_BACKEND": wanted.backend}
    return {**environ, **_QUIET, **backend}


def request_of(wanted: Wanted) -> EstimateRequest:
    """What that process is asked."""
    room = wanted.room
    return EstimateRequest(
        what=wanted.what,
        batch=wanted.batch,
        train=wanted.mode == "train",
        optimizer=wanted.optimizer,
        options=dict(wanted.options) if wanted.options else None,
        mixed=wanted.mixed,
        input=wanted.input,
        capability=room.capability if room is not None else None,
        host=wanted.host,
        rooms=None
        if room is None or not wanted.search
        else {name: room.bytes - wanted.beside_arrays(name) for name in FRAMEWORKS},
        ways=wanted.ways,
        search_seconds=wanted.search_seconds,
    )


def judge(wanted: Wanted, end: TaskEnd) -> MemoryEstimate:
    """Compare what the task found with the room. Pure."""
    if end.ended == "not-started":
        raise UsageError(end.how)
    if end.exception is not None and end.exception.failure == "unusable":
        raise UnusableWork(wanted.name, end.exception.text)
    estimates = {message.batch: message for message in end.sent(EstimateMessage)}
    asked = estimates.get(wanted.batch)
    why = wanted.no_room if asked is not None else _why(end)
    framework = "" if asked is None else asked.framework
    beside = wanted.beside_arrays(framework) if framework else 0
    at = None if asked is None else _memory(asked)
    verdict = "unknown" if wanted.no_room else _verdict(at, beside, wanted.room)
    depends_on = "" if asked is None else asked.depends_on
    if depends_on and verdict in ("fits", "does-not-fit"):
        verdict = "unknown"
        why = f"the memory depends on a value that {depends_on} reads, which an estimate has not"
    found = end.sent(LargestMessage)
    largest = estimates.get(found[-1].batch) if found else None
    return MemoryEstimate(
        what=wanted.name,
        framework=framework,
        mode="call" if asked is not None and asked.is_function else wanted.mode,
        mixed=wanted.mixed,
        verdict=verdict,
        why=why or (_UNSURE if verdict == "unknown" and at is not None else ""),
        at=at,
        overhead_bytes=beside,
        room=wanted.room,
        largest=None if largest is None else _memory(largest),
        next_batch=found[-1].next_batch if found else None,
        others=tuple(_other(way, beside, wanted.room) for way in end.sent(WayMessage)),
        notes=_notes(wanted, asked, end),
        source="" if asked is None else asked.source,
        traceback=end.traceback if asked is None and not _cannot_tell(end) else "",
        seconds=end.seconds,
    )


def _verdict(at: BatchMemory | None, beside: int, room: MemoryRoom | None) -> FitVerdict:
    if at is None:
        return "unknown"
    if room is None:
        return "not-asked"
    if at.most_bytes + beside <= room.bytes:
        return "fits"
    return "does-not-fit" if at.least_bytes + beside > room.bytes else "unknown"


def _memory(found: EstimateMessage) -> BatchMemory:
    return BatchMemory(
        batch=found.batch,
        peak_bytes=found.peak_bytes,
        needs_bytes=found.needs_bytes,
        least_bytes=found.least_bytes,
        most_bytes=found.most_bytes,
        phase=found.phase,
        parts=tuple(MemoryPart(*part) for part in found.parts),
    )


def _other(way: WayMessage, beside: int, room: MemoryRoom | None) -> OtherWay:
    fits = room is not None and way.most_bytes + beside <= room.bytes
    return OtherWay(way.name, way.batch, way.needs_bytes + beside, fits)


def _notes(wanted: Wanted, asked: EstimateMessage | None, end: TaskEnd) -> tuple[str, ...]:
    notes = [] if asked is None else list(asked.notes)
    if wanted.room is not None and wanted.room.note:
        notes.append(wanted.room.note)
    if asked is not None and wanted.room is not None and _is_close(asked, wanted, wanted.room):
        notes.append("The margin is small: the error of the estimate may be larger than it")
    if asked is not None and end.ended != "finished":
        notes.append(f"The rest was not estimated: {_why(end)}")
    return tuple(notes)


def _is_close(asked: EstimateMessage, wanted: Wanted, room: MemoryRoom) -> bool:
    total = asked.needs_bytes + wanted.beside_arrays(asked.framework)
    return abs(total - room.bytes) < CLOSE * room.bytes


def _why(end: TaskEnd) -> str:
    if end.ended == "timed-out":
        return f"it took longer than {end.how}"
    if end.ended == "over-limit":
        from whygpu.work.task_process import too_much_memory

        return too_much_memory(end)
    if end.ended == "signal":
        return f"{end.how} ended its process{_last_line(end)}"
    if end.ended == "exit":
        return f"it exited with {end.how}{_last_line(end)}"
    if _cannot_tell(end) and end.exception is not None:
        return end.exception.text
    return end.how or "its process ended without a message"


def _last_line(end: TaskEnd) -> str:
    """The last line that it printed, or for a crash the place that faulthandler printed."""
    lines = [line.strip() for line in end.error_text.splitlines() if line.strip()]
    crash = [line for line in lines if line.startswith("File ")]
    if end.ended == "signal":
        return f", at {crash[0].removeprefix('File ')}" if crash else ""
    return f"; the last line of its output: {lines[-1]}" if lines else ""


def _cannot_tell(end: TaskEnd) -> bool:
    """Whether the estimator itself says that it cannot answer: then no traceback is of use."""
    return end.exception is not None and end.exception.failure == "cannot-tell"
