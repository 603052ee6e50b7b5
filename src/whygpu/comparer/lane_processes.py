"""The processes of one lane: their policy, what they recorded, and whether they ran as asked."""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple

from whygpu.comparer.lanes import policy_of
from whygpu.errors import PolicyError
from whygpu.launch import ability, records
from whygpu.launch.execution import Prepared, prepare, staged
from whygpu.model.comparison import Lane, LaneRun, Timing
from whygpu.model.derived import display_name
from whygpu.model.lack import Lack
from whygpu.model.outside_text import excerpt
from whygpu.model.policy import DeviceUsed
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import LaneMessage, LaneRequest, Measure, Subject, TimingMessage
from whygpu.model.work import What
from whygpu.work.task_process import run_task, too_much_memory

PACKAGE = str(Path(__file__).resolve().parent.parent)
MEASURED_SECONDS = 1.5
"""How long the work is repeated to measure its speed, if the user gives no number of calls."""
KERAS_WITH_BACKENDS = 3

Progress = Callable[[str], None]


class Job(NamedTuple):
    """What every lane does."""

    what: What
    python: str
    environ: Mapping[str, str]
    installed: Mapping[str, str]
    """The frameworks of that Python, with their versions."""
    folder: str
    """For the files of the comparison, while it runs."""
    seed: int = 0
    batch: int | None = None
    shapes: str | None = None
    inputs: str | None = None
    train: int = 0
    repeat: int | None = None
    timeout: float = 1800.0
    host_limit: int | None = None
    """Main memory that one process may hold; None for what the machine can spare."""

    @property
    def shared(self) -> str:
        return os.path.join(self.folder, "shared")

    @property
    def words(self) -> list[str]:
        """The command that stands for the work in a launch plan."""
        return [self.python, *([self.what.path] if self.what.path.endswith(".py") else [])]


class Ended(NamedTuple):
    """One process of a lane, and what it used."""

    task: TaskEnd
    used: DeviceUsed

    @property
    def lane(self) -> LaneMessage | None:
        """What it computed with; None if it ended before its results were on disk."""
        return next(iter(self.task.sent(LaneMessage)), None)


class Collected(NamedTuple):
    """A lane's run, and the folders with its results; none if it did not run."""

    run: LaneRun
    recorded: tuple[str, ...] = ()
    kind: str = ""
    """keras, torch, call, pair or script; empty if it did not run."""
    backend: str | None = None
    unusable: str = ""
    """What is wrong with what the user named, if that ended the lane."""


class Begun(NamedTuple):
    """A lane after its first run, with what the second run needs."""

    collected: Collected
    prepared: Prepared | None = None
    environ: Mapping[str, str] = {}
    end: Ended | None = None

    @property
    def lane(self) -> Lane:
        return self.collected.run.lane

    @property
    def ran(self) -> bool:
        return self.end is not None

    @property
    def peak_host_bytes(self) -> int:
        return self.end.task.peak_host_bytes if self.end is not None else 0

    @property
    def is_timed_again(self) -> bool:
        """Whether the second run is the sample, because the first did the work only once."""
        timing = self.collected.run.timing
        return timing is not None and not timing.seconds


def subject_of(job: Job, lane: Lane, *, take_weights: bool = False) -> Subject:
    """The work as one lane does it."""
    return Subject(
        what=job.what,
        package=PACKAGE,
        seed=job.seed,
        batch=job.batch,
        shapes=job.shapes,
        inputs=job.inputs,
        train=job.train,
        shared=job.shared,
        lane=lane.name,
        device=lane.device,
        backend=lane.backend,
        options=lane.options,
        take_weights=take_weights,
    )


def environment_of(lane: Lane, environ: Mapping[str, str]) -> dict[str, str]:
    """The user's variables, with those of the lane that a policy of `whygpu run` does not set."""
    result = dict(environ)
    if lane.backend is not None:
        result["KERAS_BACKEND"] = lane.backend
    if "xla" in lane.options:
        given = result.get("TF_XLA_FLAGS", "")
        result["TF_XLA_FLAGS"] = f"{given} --tf_xla_auto_jit=2".strip()
    return result


def on_one_backend(job: Job, lanes: Sequence[Lane]) -> tuple[Job, str]:
    """The job with one Keras backend for all lanes that name none, and a note about it.

    Where the backend that is set cannot be used, `whygpu run` takes another: by itself one for each
    lane, because not each has to have a GPU.
    """
    plain = [lane for lane in lanes if lane.backend is None]
    if len(plain) < 2 or not has_backends(job.installed):
        return job, ""
    deciding = next((lane for lane in plain if lane.device == "gpu"), plain[0])
    try:
        plan = prepare(job.words, policy_of(deciding), job.environ).plan
    except PolicyError:
        return job, ""
    for repair in plan.repairs:
        for action in repair.actions:
            if (action.kind, action.name) == ("set", "KERAS_BACKEND"):
                environ = {**job.environ, action.name: action.value}
                note = f"in every lane that names no backend, {repair.what}, because {repair.why}"
                return job._replace(environ=environ), note
    return job, ""


def begin(job: Job, lane: Lane, progress: Progress) -> Begun:
    """The first run. Nothing else may run beside it: its times count."""
    refused = unable(lane, job.installed)
    if refused is not None:
        return Begun(Collected(refused))
    environ = environment_of(lane, job.environ)
    try:
        prepared = prepare(job.words, policy_of(lane), environ)
    except PolicyError as error:
        return Begun(Collected(LaneRun(lane, "cannot-run", error.summary)))
    lacking = _lacking(lane, prepared)
    if lacking is not None:
        return Begun(Collected(LaneRun(lane, "cannot-run", lacking.one_line)))
    asked = LaneRequest(
        subject=subject_of(job, lane),
        record=_folder(job, lane, 1),
        measure=Measure(seconds=MEASURED_SECONDS, repeat=job.repeat),
        built=built_folder(job, lane),
    )
    end = run_once(asked, prepared, environ, job, progress, f"{lane.name}, run 1 of 2")
    wrong = _gone_wrong(lane, end, prepared)
    if wrong is not None:
        return Begun(wrong)
    return Begun(_ran(lane, [end], [asked.record], prepared), prepared, environ, end)


def again(job: Job, begun: Begun, progress: Progress, stop: Event | None = None) -> Collected:
    """The second run, which shows whether the lane agrees with itself."""
    prepared, first, lane = begun.prepared, begun.end, begun.lane
    assert prepared is not None
    assert first is not None
    folder = _folder(job, lane, 2)
    # What a function compiled while it was built may be the work itself, which is measured.
    built = built_folder(job, lane) if begun.collected.kind == "keras" else None
    asked = LaneRequest(subject_of(job, lane), record=folder, built=built)
    stage = f"{lane.name}, run 2 of 2"
    end = run_once(asked, prepared, begun.environ, job, progress, stage, stop)
    wrong = _gone_wrong(lane, end, prepared)
    if wrong is not None:
        return wrong
    folders = [*begun.collected.recorded, folder]
    share_equal_files(folder, folders[0])
    return _ran(lane, [first, end], folders, prepared)


def _folder(job: Job, lane: Lane, number: int) -> str:
    return os.path.join(job.folder, f"{_file_name(lane.name)}-{number}")


def built_folder(job: Job, lane: Lane) -> str:
    return os.path.join(job.folder, f"{_file_name(lane.name)}-built")


def run_once(
    asked: LaneRequest,
    prepared: Prepared,
    environ: Mapping[str, str],
    job: Job,
    progress: Progress,
    stage: str,
    stop: Event | None = None,
) -> Ended:
    """One process of the task "lane" under its plan."""
    progress(stage)
    with staged(prepared.plan, environ) as staging:
        task = run_task(
            asked,
            python=job.python,
            environ=staging.environ,
            timeout=job.timeout,
            host_limit=job.host_limit,
            on_progress=lambda text: progress(f"{stage}: {text}"),
            stop=stop,
        )
        return Ended(task, records.device_used(staging.records()))


def unable(lane: Lane, installed: Mapping[str, str]) -> LaneRun | None:
    """The result of a lane whose backend the target lacks; None if it has it."""
    if lane.backend is None:
        return None
    for name in ("keras", lane.backend):
        if name not in installed:
            reason = f"{display_name(name)} is not installed in this environment"
            return LaneRun(lane, "cannot-run", reason, missing=name)
    if lane.backend != "tensorflow" and not has_backends(installed):
        return LaneRun(lane, "cannot-run", f"Keras {installed['keras']} runs only on TensorFlow")
    return None


def has_backends(installed: Mapping[str, str]) -> bool:
    """Whether the installed Keras has several backends."""
    major = installed.get("keras", "").partition(".")[0]
    return major.isdecimal() and int(major) >= KERAS_WITH_BACKENDS


def _lacking(lane: Lane, prepared: Prepared) -> Lack | None:
    """Why the framework of a GPU lane cannot use the GPU; None if it may, or may after repairs."""
    if lane.device == "cpu" or prepared.report is None or prepared.plan.repairs:
        return None
    named = {lane.backend} if lane.backend is not None else prepared.named
    return ability.frameworks_lack(prepared.report, named)


def _gone_wrong(lane: Lane, end: Ended, prepared: Prepared) -> Collected | None:
    """The result of a lane that did not run, or not as asked; None if all is well."""
    message = end.lane
    if message is None:
        return _not_run(lane, end.task)
    reason = ""
    if lane.device == "gpu":
        reason = _not_on_gpu(end.used, message, prepared)
    elif end.used == "gpu" or "gpu" in message.arrays_on:
        reason = "it was asked to use the CPU, but used a GPU"
    if not reason:
        return None
    return Collected(LaneRun(lane, "wrong-device", reason, message.framework))


def _not_on_gpu(used: DeviceUsed, message: LaneMessage, prepared: Prepared) -> str:
    """Why a GPU lane did not use the GPU; empty if it did."""
    if used == "none":
        return "nothing shows that it used the GPU: it started no framework"
    if used == "cpu":
        return f"it was asked to use the GPU, but ran on the CPU{prepared.because}"
    # A function may copy its results to main memory; the weights of a model stay on its device.
    if message.work in ("keras", "torch") and message.arrays_on == ("cpu",):
        return "it was asked to use the GPU, but its weights are in main memory"
    return ""


def _not_run(lane: Lane, task: TaskEnd) -> Collected:
    exception = task.exception
    if exception is not None and exception.failure == "cannot-run":
        return Collected(LaneRun(lane, "cannot-run", exception.text))
    if exception is not None and exception.failure == "unusable":
        return Collected(LaneRun(lane, "failed", exception.text), unusable=exception.text)
    return Collected(LaneRun(lane, "failed", failure(task)))


def failure(task: TaskEnd) -> str:
    how = task.how.strip()
    match task.ended:
        case "exception":
            return _main_line(how)
        case "timed-out":
            return f"it was not finished after {how}; --timeout allows more time"
        case "over-limit":
            return too_much_memory(task)
        case "signal":
            return f"{how} ended it{_last_line(task)}"
        case _:
            return f"it ended with {how}{_last_line(task)}"


def _main_line(words: str) -> str:
    """An exception's message on one line; of a message with another traceback, its last error.

    Keras writes the layer first, then the reason, and then all arguments of the layer.
    """
    reason = words.partition("Arguments received by")[0]
    lines = [line.strip() for line in (reason.strip() or words).splitlines() if line.strip()]
    inner = [line for line in lines[1:] if re.match(r"[\w.]*(Error|Exception)\b.*:", line)]
    return excerpt(inner[-1] if inner else " ".join(lines) or "an exception without a message", 500)


def _last_line(task: TaskEnd) -> str:
    lines = [line.strip() for line in task.error_text.splitlines() if line.strip()]
    return f": {excerpt(lines[-1], 200)}" if lines else ""


def _ran(
    lane: Lane, ends: Sequence[Ended], folders: Sequence[str], prepared: Prepared
) -> Collected:
    first = ends[0]
    message = first.lane
    assert message is not None
    notes = [*message.notes, *(f"repaired: {repair.what}" for repair in prepared.plan.repairs)]
    if message.weights_set:
        notes.append("its weights were set to those of the first lane")
    if message.rows is not None and message.items is not None and message.rows < message.items:
        notes.append(f"layers were recorded for {message.rows} of {message.items} examples")
    if first.task.ended != "finished":
        notes.append(f"its speed could not be measured: {failure(first.task)}")
    run = LaneRun(
        lane,
        "ran",
        framework=message.framework,
        devices=message.gpus or (lane.device,),
        products=message.products,
        timing=_timing(ends),
        notes=tuple(notes),
    )
    return Collected(run, tuple(folders), message.work, message.backend)


def _timing(ends: Sequence[Ended]) -> Timing | None:
    """Of the first run. If the work was done only once in it, the second run is the sample."""
    timing = next((each.timing for each in ends[0].task.sent(TimingMessage)), None)
    if timing is None or timing.seconds:
        return timing
    again = tuple(end.lane.first_seconds for end in ends[1:] if end.lane is not None)
    return timing._replace(seconds=again)


def share_equal_files(folder: str, earlier: str) -> None:
    """Replace files by links to equal files of an earlier run, to save disk space."""
    for name in os.listdir(folder):
        mine, earlier_copy = os.path.join(folder, name), os.path.join(earlier, name)
        if not name.endswith(".npy") or not os.path.exists(earlier_copy):
            continue
        if filecmp.cmp(mine, earlier_copy, shallow=False):
            # Some filesystems have no links; then both files stay.
            with suppress(OSError):
                os.link(earlier_copy, mine + ".link")
                os.replace(mine + ".link", mine)


def _file_name(lane: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", lane)
