"""Finds the largest batch that fits by trying, in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from whygpu.errors import Option, PolicyError, UsageError
from whygpu.host.limits import spare
from whygpu.memory import batch_cache, batch_search, estimator, sample_estimate
from whygpu.memory.answer import answer, is_irregular, with_margin
from whygpu.memory.forecast import forecast
from whygpu.memory.gpu_rooms import of_limit
from whygpu.memory.room import free_of
from whygpu.memory.sample_estimate import SampleEstimate
from whygpu.memory.trial_outcome import Limits, judge
from whygpu.memory.trial_runner import TrialRunner
from whygpu.model.batch import BatchResult, SearchWishes, Trial
from whygpu.model.observed import Known
from whygpu.model.policy import Call, DeviceChoice, DevicePolicy, LaunchPlan, MemoryLimit
from whygpu.model.snapshot import Snapshot
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import ProgramMessage, StepMessage, TrialRequest
from whygpu.model.units import size_text
from whygpu.model.work import What

DEFAULT_TIMEOUT = 600.0
IN_TRIAL = "WHYGPU_IN_TRIAL"
"""Set in a trial's process, so that a file that searches when it is loaded does not do so there."""
_REGULAR = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1048576"
_REFUSE_AT_ONCE = Call(
    framework="tensorflow",
    name="refuse_at_once",
    arguments={},
    part="memory",
    reason="its allocator would wait up to 10 s before it refuses a request",
)
_UNASKED_PART = 0.5
_OVERSHOOT = 1.25
"""Times the limit: how far a trial may go beyond it, to be measured."""


class Wanted(NamedTuple):
    """What to find, and under which conditions."""

    name: str
    """The step as the user calls it."""
    what: What | None
    """None if it is pickled."""
    python: str | None = None
    device: DeviceChoice | None = None
    limit: int | None = None
    margin: float = 0.0
    start: int = batch_search.FIRST_BATCH
    largest: int | None = None
    multiple_of: int = 1
    infer: bool = False
    optimizer: str | None = None
    input: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    cache: bool = True
    pickled: str | None = None
    """The file with the pickle."""
    search_path: tuple[str, ...] = ()
    """Folders that the calling program looks for its modules in."""

    @property
    def wishes(self) -> SearchWishes:
        return SearchWishes(
            self.start, self.largest, self.multiple_of, batch_search.MOST_TRIALS, self.timeout
        )

    @property
    def wants_gpu(self) -> bool:
        return self.device is not None and self.device.kind == "gpu"

    @property
    def wants_cpu(self) -> bool:
        return self.device is not None and self.device.kind == "cpu"


class Progress(NamedTuple):
    batch: int
    stage: str
    trials: tuple[Trial, ...]
    """Those that are done."""
    on_gpu: bool
    """Whether a GPU's memory is filled, or the computer's main memory."""


OnProgress = Callable[[Progress], None]


def find(wanted: Wanted, environ: Mapping[str, str], on_progress: OnProgress) -> BatchResult:
    """UsageError if the machine lacks what is wanted, or the step cannot be used like this."""
    check(wanted)
    began = time.monotonic()
    machine = _look(wanted.python)
    limits = _limits(wanted, machine)
    key = batch_cache.key_of(wanted, machine, environ) if wanted.cache else None
    known = batch_cache.load(key, limits) if key is not None else None
    if known is not None:
        return with_margin(known, wanted.wishes, wanted.margin)
    python = _python(machine)
    plan = _plan(wanted, limits, python, environ)
    from whygpu.launch.execution import staged

    with (
        staged(plan, environ) as stage,
        SampleEstimate(_to_estimate(wanted, limits), python, {**environ, IN_TRIAL: "1"}) as sample,
        TrialRunner(
            _request(wanted),
            python=python,
            environ={**stage.environ, IN_TRIAL: "1"},
            timeout=wanted.timeout,
            on_program=sample.begin,
        ) as runner,
    ):
        tries = _Tries(wanted, limits, runner, sample, on_progress)
        result = tries.to_the_end()
    result = result._replace(
        notes=(
            *plan.remarks,
            *result.notes,
            *_of_main_memory(wanted, tries.limits),
            *_of_malloc(result, environ),
        ),
        seconds=round(time.monotonic() - began, 3),
    )
    if key is not None:
        batch_cache.save(key, limits, result, tries.sources)
    return with_margin(result, wanted.wishes, wanted.margin)


def _of_malloc(result: BatchResult, environ: Mapping[str, str]) -> tuple[str, ...]:
    """A note on how to make main memory regular, if it is not and malloc has its defaults."""
    chosen = "glibc.malloc" in environ.get("GLIBC_TUNABLES", "") or any(
        name.startswith("MALLOC_") for name in environ
    )
    if chosen or not is_irregular(result.trials):
        return ()
    return (
        "near the limit, the use of main memory does not simply grow with the batch, often because "
        f"malloc leaves holes. Set {_REGULAR} for this search and for your program: glibc then "
        "returns the memory of large arrays at once. PyTorch then takes less memory, and the same "
        "amount in every run, but each step takes longer",
    )


def check(wanted: Wanted) -> None:
    """UsageError for impossible numbers."""
    for name, number in (
        ("start", wanted.start),
        ("largest", wanted.largest),
        ("multiple_of", wanted.multiple_of),
    ):
        if number is not None and number < 1:
            raise UsageError("expected 1 or more", option=name, value=number)
    if wanted.largest is not None and wanted.largest < wanted.multiple_of:
        raise UsageError(
            f"no multiple of {wanted.multiple_of} is that small; expected {wanted.multiple_of} or "
            "more",
            option="largest",
            value=wanted.largest,
        )
    if not 0 <= wanted.margin < 1:
        raise UsageError(
            "expected at least 0 and less than 1", option="margin", value=wanted.margin
        )
    if not wanted.timeout > 0:
        raise UsageError("expected more than 0 seconds", option="timeout", value=wanted.timeout)


def _look(python: str | None) -> Snapshot:
    from whygpu.collectors.collect import collect
    from whygpu.host.local import LocalHost

    return collect(LocalHost(), python)


def _python(machine: Snapshot) -> str:
    interpreter = machine.target.interpreter
    if not isinstance(interpreter, Known):
        raise UsageError(getattr(interpreter, "reason", "there is no Python to run the step with"))
    return interpreter.value.path


def _limits(wanted: Wanted, machine: Snapshot) -> Limits:
    """The limits that the machine shows. On a GPU, the framework may know a smaller one."""
    on_gpu = not wanted.wants_cpu and has_gpu(machine)
    available = machine.system.memory.available_bytes
    memory = None
    if isinstance(available, Known):
        memory = spare(available.value)
    gpu = wanted.limit if on_gpu else None
    if on_gpu and gpu is None:
        gpus = machine.driver.gpus
        free = [free_of(each) for each in gpus.value] if isinstance(gpus, Known) else []
        known = [each.value for each in free if isinstance(each, Known)]
        gpu = max(known, default=None)
    limit = memory if on_gpu else _main_memory(wanted, memory)
    return Limits(limit, gpu, _address_space(), ceiling=_ceiling(limit, memory))


def _main_memory(wanted: Wanted, spare: int | None) -> int | None:
    """How much main memory a search on the CPU may fill.

    Without `--limit` and `--device cpu`, the user may have expected a GPU. Filling nearly all of
    the main memory would slow down every other program for an answer that nobody wanted.
    """
    if wanted.limit is not None:
        return wanted.limit
    return spare if spare is None or wanted.wants_cpu else int(spare * _UNASKED_PART)


def _ceiling(limit: int | None, spare: int | None) -> int | None:
    """Above the limit, if the machine has the memory to spare: by how much a batch is too large
    shows where the limit is reached."""
    if limit is None or spare is None:
        return limit
    return max(limit, min(int(limit * _OVERSHOOT), spare))


def _of_main_memory(wanted: Wanted, limits: Limits) -> tuple[str, ...]:
    """A note on what the answer is for, if nobody has said how much memory may be filled."""
    if limits.gpu is not None or limits.memory is None:
        return ()
    if wanted.limit is not None or wanted.wants_cpu:
        return ()
    return (
        f"the step runs on the CPU, so it was tried with {_UNASKED_PART:.0%} of the free main "
        f"memory ({size_text(limits.memory)}); --device cpu uses nearly all of it, and --limit "
        "another amount",
    )


def _address_space() -> int | None:
    """The limit of `ulimit -v` for the trials; None if there is none."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def has_gpu(machine: Snapshot) -> bool:
    gpus = machine.driver.gpus
    return isinstance(gpus, Known) and bool(gpus.value)


def _plan(wanted: Wanted, limits: Limits, python: str, environ: Mapping[str, str]) -> LaunchPlan:
    """The launch plan that every trial runs under: as for `whygpu run`, without waits."""
    from whygpu.launch.execution import prepare

    limited = wanted.limit is not None and limits.gpu is not None
    memory = MemoryLimit("bytes", float(wanted.limit or 0)) if limited else None
    argv = [python] if wanted.what is None else [python, wanted.what.path]
    try:
        plan = prepare(argv, DevicePolicy(device=wanted.device, memory=memory), environ).plan
        return plan._replace(calls=(*plan.calls, _REFUSE_AT_ONCE))
    except PolicyError as error:
        hint = ("; ", Option("device", "cpu"), " finds what fits into main memory")
        raise UsageError(*error.args, *(hint if wanted.wants_gpu else ())) from error


def _to_estimate(wanted: Wanted, limits: Limits) -> estimator.Wanted | None:
    """What to estimate while the first trial runs; None where it would be of no use."""
    if wanted.what is None or limits.gpu is None:
        return None
    return estimator.Wanted(
        wanted.name,
        wanted.what,
        wanted.start,
        mode="infer" if wanted.infer else "train",
        optimizer=wanted.optimizer,
        input=wanted.input,
        room=of_limit(limits.gpu),
        ways=False,
        beside=0,
        timeout=sample_estimate.TIMEOUT,
        search_seconds=sample_estimate.SEARCH_SECONDS,
    )


def _request(wanted: Wanted) -> TrialRequest:
    return TrialRequest(
        what=wanted.what,
        pickled=wanted.pickled,
        infer=wanted.infer,
        optimizer=wanted.optimizer,
        input=wanted.input,
        search_path=wanted.search_path,
    )


class _Tries:
    """The trials of one search, one after the other."""

    def __init__(
        self,
        wanted: Wanted,
        limits: Limits,
        runner: TrialRunner,
        sample: SampleEstimate,
        on_progress: OnProgress,
    ) -> None:
        self._wanted = wanted
        self._sample = sample
        self.limits = limits
        self._runner = runner
        self._on_progress = on_progress
        self._trials: list[Trial] = []
        self._notes: list[str] = []
        self._frameworks: dict[str, str] = {}
        self._device = "CPU"
        self._traceback = ""
        self.sources: tuple[str, ...] = ()

    def to_the_end(self) -> BatchResult:
        while True:
            wishes = self._wanted.wishes._replace(sample_bytes=self._sample.bytes)
            move = batch_search.next_move(self._trials, wishes)
            if isinstance(move, batch_search.Stop):
                break
            self._try(move)
        result = answer(self._wanted.name, self._trials, move.reason)
        return result._replace(
            device=self._device,
            frameworks=tuple(sorted(self._frameworks.items())),
            traceback=self._traceback,
            notes=(*self._notes, *result.notes),
        )

    def _try(self, move: batch_search.Try) -> None:
        trial, end = self._one(move.batch, alone=move.alone or not self._fills_gpu())
        if not trial.alone and trial.outcome not in ("fits", "does-not-fit"):
            # The trials before it in the same process may be the reason.
            trial, end = self._one(move.batch, alone=True)
        if trial.outcome == "failed":
            if end.exception is not None and end.exception.failure == "unusable":
                raise UsageError(f"{self._wanted.name}: {end.exception.text}")
            self._traceback = of_the_user(end.traceback) or end.error_text
        self._trials.append(trial)

    def _fills_gpu(self) -> bool:
        """Whether a GPU's memory is what runs out first, as far as that is known.

        One batch does not show that: what libraries load into main memory at the first step looks
        as if the batch took it.
        """
        ran = {trial.batch for trial in self._trials if trial.outcome == "fits"}
        seen = forecast(self._trials) if len(ran) > 1 else None
        return seen is None or seen.gauge.on_gpu

    def _one(self, batch: int, *, alone: bool) -> tuple[Trial, TaskEnd]:
        def tell(stage: str) -> None:
            self._on_progress(
                Progress(batch, stage, tuple(self._trials), self.limits.gpu is not None)
            )

        tell("starting")
        end, new = self._runner.run(
            batch,
            alone=alone,
            confirms=any(trial.batch == batch for trial in self._trials),
            host_limit=self.limits.ceiling,
            gpu_limit=self.limits.gpu,
            on_progress=tell,
        )
        self._note_program(end)
        near_limit = batch_search.comes_near_refusal(self._trials, batch)
        return judge(batch, end, self.limits, near_limit=near_limit)._replace(alone=new), end

    def _note_program(self, end: TaskEnd) -> None:
        """Take over what the process sent about itself, apart from how it ended."""
        for program in end.sent(ProgramMessage):
            self._frameworks, self.sources = program.frameworks, program.sources
        steps = end.sent(StepMessage)
        if not steps:
            return
        device = steps[-1].device
        if device is not None:
            self._device = device.name
        elif self.limits.gpu is not None or self._wanted.wants_gpu:
            self._stays_on_cpu()

    def _stays_on_cpu(self) -> None:
        """There is a GPU, and the step does not use it."""
        if self._wanted.wants_gpu:
            raise UsageError(
                f"{self._wanted.name} ran on the CPU; `whygpu check` says why its framework "
                "does not use the GPU",
                option="device",
                value=self._words(),
            )
        self._notes.append("the step does not use this machine's GPU: main memory is the limit")
        memory = _main_memory(self._wanted, self.limits.memory)
        ceiling = _ceiling(memory, self.limits.memory)
        self.limits = self.limits._replace(gpu=None, memory=memory, ceiling=ceiling)

    def _words(self) -> str:
        device = self._wanted.device
        return "gpu" if device is None else ":".join([device.kind, *device.gpus])


def of_the_user(traceback: str) -> str:
    """A traceback without our own frames."""
    kept, ours = [], False
    for line in traceback.splitlines():
        if line.startswith("  File "):
            ours = "whygpu_work" in line
        elif not line.startswith("    "):
            ours = False
        if not ours:
            kept.append(line)
    return "\n".join(kept)
