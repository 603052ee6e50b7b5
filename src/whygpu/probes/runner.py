"""Runs the frameworks for real inside the target, each in a process of its own."""

from __future__ import annotations

import os
import selectors
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from whygpu.host.limits import spare
from whygpu.host.processes import LOOK_SECONDS
from whygpu.model.probe import Probe, ProbeName
from whygpu.model.target import FrameworkName
from whygpu.probes import DEFAULT_TIMEOUT
from whygpu.probes.probe_process import HARNESS, ProbeProcess
from whygpu.probes.result import Result

SCRIPTS: Mapping[ProbeName, Path] = {
    name: HARNESS.parent / f"{name}.py" for name in get_args(ProbeName)
}

_CLEAN_UP_SECONDS = 1.0
_GB = 1_000_000_000
_MEMORY_NEED: Mapping[ProbeName, int] = {
    "cuda": _GB // 4,
    "tensorflow": 2 * _GB,
    "keras": 2 * _GB,
    "jax": 3 * _GB // 2,
    "torch": 2 * _GB,
}
"""Generous: what the process holds at its peak, with room for a CUDA context."""

_TENSORFLOW_ENVIRONMENT = {
    # The one module whose verbose lines name the library that could not be loaded.
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
"""What a probe adds: words where the framework is silent, and modesty with GPU memory."""


class ProgressEvent(NamedTuple):
    probe: ProbeName
    kind: Literal["started", "stage", "ended"]
    text: str
    """The stage, or how it ended; empty at the start."""


Progress = Callable[[ProgressEvent], None]


def probes_for(frameworks: Collection[FrameworkName], *, cuda: bool) -> tuple[ProbeName, ...]:
    """The probes worth running: one per framework that has one, and the driver's own."""
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
) -> tuple[Probe, ...]:
    """Run probes side by side as far as cores and memory allow; the results are in order of names.

    However a probe ends, it ends as a Probe. On KeyboardInterrupt, and whatever else ends us,
    the processes are killed first. None of them may take more than what the machine can spare of
    `memory_available`.
    """
    memory_limit = None if memory_available is None else spare(memory_available)
    with _traceless(environ) as traceless, _Crew(on_progress or (lambda event: None)) as crew:
        environ = {**environ, **traceless}
        waiting = list(names)
        while waiting or crew.at_work:
            while waiting and _has_room(waiting[0], crew.at_work, memory_available):
                name = waiting.pop(0)
                patched = {**environ, **_ENVIRONMENT[name]}
                crew.start(
                    name,
                    target_python,
                    scripts[name],
                    timeout=timeout,
                    environ=patched,
                    memory_limit=memory_limit,
                )
            crew.watch()
    return tuple(crew.ended[name] for name in names)


@contextmanager
def _traceless(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Keras writes its settings file where there is none; that must not be into a user's home."""
    home = environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    if os.path.exists(os.path.join(home, "keras.json")):
        yield {}
        return
    try:
        scratch = tempfile.mkdtemp(prefix="whygpu-")
    except OSError:
        # Nowhere to write: then Keras has nowhere to write either.
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
    if memory_available is None or len(at_work) >= _cores():
        return False
    return sum(_MEMORY_NEED[each] for each in (name, *at_work)) <= memory_available


def _cores() -> int:
    """The cores this process may use, where the platform tells."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


class _Crew:
    """The probes at work: their processes, what they say, and their end."""

    def __init__(self, tell: Progress) -> None:
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

    def start(
        self,
        name: ProbeName,
        target_python: str,
        script: Path,
        *,
        timeout: float,
        environ: Mapping[str, str],
        memory_limit: int | None,
    ) -> None:
        self._tell(ProgressEvent(name, "started", ""))
        try:
            process = ProbeProcess(
                name,
                target_python,
                script,
                timeout=timeout,
                environ=environ,
                memory_limit=memory_limit,
            )
        except (OSError, ValueError) as error:
            how = f"{target_python}: {getattr(error, 'strerror', None) or error}"
            self._end(Result(name).probe("not-started", how, 0.0, (), False))
            return
        self._processes.append(process)
        for descriptor in (process.result_fd, process.log_fd):
            self._selector.register(descriptor, selectors.EVENT_READ, process)

    def watch(self) -> None:
        """Take in what there is to read, for a moment, and see which probes have ended."""
        for key, _ in self._selector.select(LOOK_SECONDS):
            process: ProbeProcess = key.data
            before = process.result.stage
            if not process.read(key.fd):
                self._selector.unregister(key.fd)
            if process.result.stage != before:
                self._tell(ProgressEvent(process.name, "stage", process.result.stage))
        for process in [each for each in self._processes if each.tend()]:
            for descriptor in (process.result_fd, process.log_fd):
                with suppress(KeyError):
                    self._selector.unregister(descriptor)
            self._processes.remove(process)
            self._end(process.end())

    def _end(self, probe: Probe) -> None:
        self.ended[probe.name] = probe
        self._tell(ProgressEvent(probe.name, "ended", probe.how))
