"""A search for the largest batch that fits: what is asked, each trial, and the answer."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.short_repr import short_repr
from whygpu.model.standing import EXIT_CODES, Standing

GaugeName = Literal["gpu", "gpu-gradients", "memory", "address-space"]
"""GPU memory; as far as it is in use before the weights are updated, where the framework tells;
main memory that is resident; what `ulimit -v` limits."""


class Gauge(NamedTuple):
    """One kind of memory in one trial, in bytes."""

    name: GaugeName
    before: int
    """Held before the first step: the framework, and the model where it is loaded by then."""
    peak: int
    """The most, from the start of the process to its end."""
    steady: int
    """The most during a step, once the first one has compiled and set up everything."""
    limit: int | None

    @property
    def decides(self) -> bool:
        """Whether the limit is held against this very number, so that a hair above is too much.

        A GPU's allocator fails for holes between blocks before its counters reach the limit, and
        gives up what it can spare when they do.
        """
        return self.name == "memory"

    @property
    def on_gpu(self) -> bool:
        return self.name in ("gpu", "gpu-gradients")


TrialOutcome = Literal["fits", "does-not-fit", "leaks", "failed", "too-slow"]


class Trial(NamedTuple):
    """A few steps with one batch, in a process of their own."""

    batch: int
    outcome: TrialOutcome
    how: str
    """Why it did not fit, or what else became of it; empty where it fits."""
    gauges: tuple[Gauge, ...]
    """Of what has a limit first; as far as it came."""
    steps: int
    """That were done."""
    step_seconds: float | None
    """One step's time once everything is compiled."""
    seconds: float
    """From the start of the process to its end."""
    leak_bytes: int | None = None
    """What memory rises by with each step, where it does so steadily."""

    @property
    def samples_per_second(self) -> float | None:
        return self.batch / self.step_seconds if self.step_seconds else None

    def gauge(self, name: GaugeName) -> Gauge | None:
        return next((gauge for gauge in self.gauges if gauge.name == name), None)


class SearchWishes(NamedTuple):
    """What the search may try."""

    start: int
    """The first batch."""
    largest: int | None
    """No larger one is tried."""
    multiple_of: int
    trials: int
    """At most."""
    timeout: float
    """Seconds for each trial."""


BatchOutcome = Literal[
    "found", "at-largest", "unsettled", "nothing-fits", "leaks", "failed", "too-slow"
]
"""`found` the largest, within a few per cent; `at-largest` the largest that was asked for fits;
`unsettled` something fits, and there were no trials left to narrow it down; `nothing-fits` not
even the smallest batch; `leaks` every step keeps memory, so that no batch is safe; `failed` the
step raised something that has nothing to do with memory; `too-slow` a trial was not done in time.
"""


_STANDINGS: dict[BatchOutcome, Standing] = {
    "found": "fine",
    "at-largest": "fine",
    "nothing-fits": "wrong",
    "leaks": "wrong",
    "unsettled": "unknown",
    "failed": "unknown",
    "too-slow": "unknown",
}


class BatchResult(NamedTuple):
    """The largest batch that fits, and how it was found."""

    what: str
    outcome: BatchOutcome
    batch: int | None
    """To use: the largest that ran, less the margin; None where none is known to be safe."""
    largest_run: int | None
    """The largest batch that ran."""
    smallest_not: int | None
    """The smallest larger one that did not."""
    forecast: int | None
    """The largest by the line through what was measured, where there are two points for one."""
    margin: float
    """The part of the memory to be left free."""
    device: str
    """The GPU's name, or CPU."""
    limit: Gauge | None
    """What runs out first, as it was with the largest batch that ran."""
    frameworks: tuple[tuple[str, str], ...]
    """Names and versions, as the trials had them."""
    trials: tuple[Trial, ...]
    traceback: str
    """Of what failed; empty where nothing did."""
    notes: tuple[str, ...]
    seconds: float
    cached: bool = False
    """Found before, and remembered."""

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[_STANDINGS[self.outcome]]

    def __int__(self) -> int:
        if self.batch is None:
            raise ValueError(f"no batch size is known to be safe for {self.what}: {self.outcome}")
        return self.batch

    def __index__(self) -> int:
        return int(self)

    @property
    def fastest(self) -> Trial | None:
        """The trial with the most samples per second."""
        timed = [each for each in self.trials if each.outcome == "fits" and each.step_seconds]
        return max(timed, key=lambda each: each.samples_per_second or 0.0, default=None)
