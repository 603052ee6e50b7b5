"""Runs the frameworks for real inside the target, in processes that are limited and watched."""

from __future__ import annotations

import os
import selectors
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from whygpu.host.limits import spare
from whygpu.host.processes import LOOK_SECONDS
from whygpu.host.systems import cores
from whygpu.model.probe import Probe, ProbeName
from whygpu.model.target import FrameworkName
from whygpu.probes import DEFAULT_TIMEOUT
from whygpu.probes.probe_process import HARNESS, ProbeProcess
from whygpu.probes.result import Result
from whygpu.probes.shared_process import is_sound, is_sound_guest

SCRIPTS: Mapping[ProbeName, Path] = {
    name: HARNESS.parent / f"{name}.py" for name in get_args(ProbeName)
}

GUEST_SHARE = 0.25
"""Of the time limit: so long Keras waits for the probe whose process it is to share, and so long it
may take there. Then it gets a process of its own, with the whole limit."""
_CLEAN_UP_SECONDS = 1.0
_GB = 1_000_000_000
_MEMORY_NEED: Mapping[ProbeName, int] = {
    "cuda": _GB // 4,
    "tensorflow": 2 * _GB,
    "keras": 2 * _GB,
    "jax": 3 * _GB // 2,
    "torch": 2 * _GB,
}
"""An upper estimate of what the process holds at its peak, including a CUDA context."""

_TENSORFLOW_ENVIRONMENT = {
    # The module whose verbose log names the library that could not be loaded.
    "TF_CPP_VMODULE": "dso_loader=1",
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}
_JAX_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "0", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
_ENVIRONMENT: Mapping[ProbeName, Mapping[str, str]] = {
    "cuda": {},
    "tensorflow": _TENSORFLOW_ENVIRONMENT,
    "keras": {**_TENSORFLOW_ENVIRONMENT, **_JAX_ENVIRONMENT},
    "jax": _JAX_ENVIRONMENT,
    "torch": {},
}
"""Variables for a probe: they make the framework log more and allocate GPU memory on demand."""


class ProgressEvent(NamedTuple):
    probe: ProbeName | Literal["stress"]
    """`stress`: no probe, but the test under load that may follow them."""
    kind: Literal["started", "stage", "ended"]
    text: str
    """The stage, or how the probe ended; empty at the start."""


Progress = Callable[[ProgressEvent], None]


def probes_for(frameworks: Collection[FrameworkName], *, cuda: bool) -> tuple[ProbeName, ...]:
    """The probes to run: one for each framework that has one, and the driver's."""
    return tuple(name for name in SCRIPTS if (cuda if name == "cuda" else name in frameworks))


def run_probes(
    target_python: str,
    names: Sequence[ProbeName],
    *,
    timeout: float = DEFAULT_TIMEOUT,
    environ: Mapping[str, str],
    memory_available: int | None,
    on_progress: Progress | None = None,
    scripts: Mapping[ProbeName, Path] = SCRIPTS,
    keras_host: ProbeName | None = None,
) -> tuple[Probe, ...]:
    """Run probes in parallel as far as cores and memory allow; the results are in order of names.

    Whatever happens to a probe, there is a Probe that says so. On KeyboardInterrupt, and whatever
    else ends us, the processes are killed first. None of them may take more than what the machine
    can spare of `memory_available`.

    `keras_host`: the probe in whose process Keras is tried first, to save an import. What it does
    there counts only if both are sound; otherwise Keras gets a process of its own.
    """
    memory_limit = None if memory_available is None else spare(memory_available)
    guests: dict[ProbeName, ProbeName] = {}
    if keras_host is not None and keras_host in names and "keras" in names:
        guests[keras_host] = "keras"
    waiting = [name for name in names if name not in guests.values()]
    with _traceless(environ) as traceless:
        launch = _Launch(target_python, scripts, timeout, {**environ, **traceless}, memory_limit)
        with _Crew(launch, guests, on_progress or (lambda event: None)) as crew:
            while waiting or crew.at_work:
                while waiting and _has_room(waiting[0], crew.at_work, memory_available):
                    crew.start(waiting.pop(0))
                crew.watch()
                waiting += crew.take_released()
    return tuple(crew.ended[name] for name in names)


@contextmanager
def _traceless(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Keras creates its settings file if there is none; that must not happen in a user's home."""
    user = environ.get("HOME") or os.path.expanduser("~")
    home = environ.get("KERAS_HOME") or os.path.join(user, ".keras")
    if os.path.exists(os.path.join(home, "keras.json")):
        yield {}
        return
    try:
        scratch = tempfile.mkdtemp(prefix="whygpu-")
    except OSError:
        # There is no place to write, for Keras either.
        yield {}
        return
    try:
        yield {"KERAS_HOME": scratch}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _has_room(
    name: ProbeName, at_work: Collection[ProbeName], memory_available: int | None
) -> bool:
    if not at_work:
        return True
    if memory_available is None or len(at_work) >= cores():
        return False
    return sum(_MEMORY_NEED[each] for each in (name, *at_work)) <= memory_available


class _Launch(NamedTuple):
    """What all probes of one run are started with."""

    target_python: str
    scripts: Mapping[ProbeName, Path]
    timeout: float
    environ: Mapping[str, str]
    memory_limit: int | None


class _Crew:
    """The running probes: their processes, what they send, and their results."""

    def __init__(
        self, launch: _Launch, guests: Mapping[ProbeName, ProbeName], tell: Progress
    ) -> None:
        """`guests`: which probe's process may go on with which other probe."""
        self._launch = launch
        self._guests = dict(guests)
        self._released: list[ProbeName] = []
        self._tell = tell
        self._processes: list[ProbeProcess] = []
        self._selector = selectors.DefaultSelector()
        self.ended: dict[ProbeName, Probe] = {}

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *exception: object) -> None:
        self._selector.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.close(_CLEAN_UP_SECONDS)

    @property
    def at_work(self) -> tuple[ProbeName, ...]:
        return tuple(process.name for process in self._processes)

    def take_released(self) -> list[ProbeName]:
        """The guests that need a process of their own after all, each once."""
        released, self._released = self._released, []
        return released

    def start(self, name: ProbeName) -> None:
        launch = self._launch
        self._tell(ProgressEvent(name, "started", ""))
        try:
            process = ProbeProcess(
                name,
                launch.target_python,
                launch.scripts[name],
                timeout=launch.timeout,
                environ={**launch.environ, **_ENVIRONMENT[name]},
                memory_limit=launch.memory_limit,
                shared=name in self._guests,
            )
        except (OSError, ValueError) as error:
            how = f"{launch.target_python}: {getattr(error, 'strerror', None) or error}"
            self._release_guest_of(name)
            self._end(Result(name).probe("not-started", how, 0.0, (), False))
            return
        self._processes.append(process)
        for descriptor in (process.result_fd, process.log_fd):
            self._selector.register(descriptor, selectors.EVENT_READ, process)

    def watch(self) -> None:
        """Read what there is to read, for a moment, and see which probes have ended."""
        for key, _ in self._selector.select(LOOK_SECONDS):
            process: ProbeProcess = key.data
            before = process.result.stage
            if not process.read(key.fd):
                self._selector.unregister(key.fd)
            if process.result.stage != before:
                self._tell(ProgressEvent(process.name, "stage", process.result.stage))
        for process in self._processes:
            self._attend_to_guest(process)
        for process in [each for each in self._processes if each.tend()]:
            for descriptor in (process.result_fd, process.log_fd):
                with suppress(KeyError):
                    self._selector.unregister(descriptor)
            self._processes.remove(process)
            self._take_results(process)

    def _attend_to_guest(self, process: ProbeProcess) -> None:
        """Let a sound host go on with its guest; one that is not, or is slow, loses it."""
        guest = self._guests.get(process.name)
        if guest is None:
            return
        limit = self._launch.timeout * GUEST_SHARE
        if process.result.finished and is_sound(process.finished_probe()):
            self._tell(ProgressEvent(process.name, "ended", ""))
            self._tell(ProgressEvent(guest, "started", ""))
            del self._guests[process.name]
            script, environ = self._launch.scripts[guest], _ENVIRONMENT[guest]
            process.run_next(guest, script, timeout=limit, environ=environ)
        elif process.result.finished or process.seconds > limit:
            process.let_go()
            self._release_guest_of(process.name)

    def _release_guest_of(self, name: ProbeName) -> None:
        guest = self._guests.pop(name, None)
        if guest is not None:
            self._released.append(guest)

    def _take_results(self, process: ProbeProcess) -> None:
        self._release_guest_of(process.name)
        last = process.end()
        first = process.earlier
        if first is None:
            self._end(last)
            return
        self.ended[first.name] = first
        if is_sound_guest(last, first.name):
            self._end(last)
        else:
            self._released.append(last.name)

    def _end(self, probe: Probe) -> None:
        self.ended[probe.name] = probe
        self._tell(ProgressEvent(probe.name, "ended", probe.how))
