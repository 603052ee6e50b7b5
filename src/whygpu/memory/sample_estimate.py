"""Estimates what a sample adds to the memory of a step, while the first trial of a search runs.

If a compiler works on each batch, a trial takes long, and an estimate saves one: the second trial
already comes near the limit. The estimate only chooses a trial; it is never an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event, Thread

from whygpu.errors import UsageError
from whygpu.memory.estimator import Wanted, estimate
from whygpu.model.estimate import MemoryEstimate
from whygpu.model.task_wire import ProgramMessage

TIMEOUT = 120.0
SEARCH_SECONDS = 20.0
_HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "-1"}
"""The estimate must not take memory of the GPU, which is all for the trials."""
_COMPILE_EACH_BATCH = frozenset({"jax", "tensorflow"})


class SampleEstimate:
    """Starts when a trial reports what it has imported. Close it at the end, by `with`."""

    def __init__(self, wanted: Wanted | None, python: str, environ: Mapping[str, str]) -> None:
        """`wanted` is None if nothing can be estimated."""
        self._wanted = wanted
        self._python = python
        self._environ = {**environ, **_HIDDEN}
        self._stop = Event()
        self._thread: Thread | None = None
        self.bytes: float | None = None
        """For each sample; None while it is unknown."""

    def __enter__(self) -> SampleEstimate:
        return self

    def __exit__(self, *ignored: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self, program: ProgramMessage) -> None:
        """Begin, if it has not begun, and the program's frameworks compile each batch."""
        imported = set(program.frameworks)
        if self._wanted is None or self._thread is not None:
            return
        if "torch" in imported or not imported & _COMPILE_EACH_BATCH:
            return
        self._thread = Thread(target=self._run, args=(self._wanted,), daemon=True)
        self._thread.start()

    def _run(self, wanted: Wanted) -> None:
        try:
            found = estimate(wanted, self._python, self._environ, _ignore, stop=self._stop)
        except UsageError:
            # A step that only runs, such as a function that trains by itself.
            return
        self.bytes = of_a_sample(found)


def of_a_sample(found: MemoryEstimate) -> float | None:
    """By the batch asked for and the largest that fits; None if they do not tell."""
    if found.at is None or found.largest is None or found.largest.batch <= found.at.batch:
        return None
    added = found.largest.most_bytes - found.at.most_bytes
    return added / (found.largest.batch - found.at.batch) if added > 0 else None


def _ignore(stage: str) -> None:
    """The progress of the search is that of its trials."""
