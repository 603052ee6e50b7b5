"""A search for the largest batch that fits: the request, each trial, and the answer."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

GaugeName = Literal["gpu", "gpu-gradients", "memory", "address-space"]
"""GPU memory; GPU memory before the weights are updated, if the framework reports it;
main memory that is resident; what `ulimit -v` limits."""


class Gauge(NamedTuple):
    """One kind of memory in one trial, in bytes."""

    name: GaugeName
    before: int
    """Held before the first step: the framework, and the model if it is loaded by then."""
    peak: int
    """The most, from the start of the process to its end."""
    steady: int
    """The most during a step, once the first one has compiled and set up everything."""
    limit: int | None

    @property
    def decides(self) -> bool:
        """Whether the limit applies to exactly this number, so that one byte more is too much.

        This is not so for a GPU's allocator. Fragmentation can make it fail before its counters
        reach the limit, and when they reach it, the allocator frees cached blocks.
        """
        return self.name == "memory"

    @property
    def on_gpu(self) -> bool:
        return self.name in ("gpu", "gpu-gradients")


TrialOutcome = Literal["fits", "does-not-fit", "leaks", "failed", "too-slow"]


class Trial(NamedTuple):
    """A few steps with one batch size, outside the process of whygpu."""

    batch: int
    outcome: TrialOutcome
    how: str
    """Why it did not fit, or how else it failed; empty if it fits."""
    gauges: tuple[Gauge, ...]
    """Memory with a limit comes first. Incomplete if the trial ended early."""
    steps: int
    """Completed steps."""
    step_seconds: float | None
    """One step's time once everything is compiled."""
    seconds: float
    """The whole trial, with the start of its process if it has one of its own."""
    leak_bytes: int | None = None
    """How much memory use grows with each step, if it grows steadily."""
    alone: bool = True
    """Its process had tried nothing before."""

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
    close: float = 0.035
    """The search may end when what ran is within this part of what did not."""
    sample_bytes: float | None = None
    """What a sample adds to the memory, as estimated; None if that is not known."""


BatchOutcome = Literal[
    "found", "at-largest", "unsettled", "nothing-fits", "leaks", "failed", "too-slow"
]
"""`found`: the largest, within a few per cent. `at-largest`: the largest allowed batch fits.
`unsettled`: something fits, but no trials were left to narrow it down. `nothing-fits`: not even
the smallest batch fits. `leaks`: every step keeps memory, so that no batch is safe. `failed`: the
step failed for a reason other than memory. `too-slow`: a trial did not finish in time.
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


@shows_itself
class BatchResult(NamedTuple):
    """The largest batch that fits, and how it was found."""

    what: str
    outcome: BatchOutcome
    batch: int | None
    """The batch to use: the largest that ran, minus the margin; None if none is surely safe."""
    largest_run: int | None
    """The largest batch that ran."""
    smallest_not: int | None
    """The smallest batch above `largest_run` that did not fit."""
    forecast: int | None
    """The largest batch by a line through the measurements, if there are at least two points."""
    margin: float
    """The fraction of the memory to leave free."""
    device: str
    """The GPU's name, or CPU."""
    limit: Gauge | None
    """The memory that runs out first, measured with the largest batch that ran."""
    frameworks: tuple[tuple[str, str], ...]
    """Names and versions, as the trials used them."""
    trials: tuple[Trial, ...]
    traceback: str
    """The traceback of the failure; empty if nothing failed."""
    notes: tuple[str, ...]
    seconds: float
    cached: bool = False
    """The result of an earlier search, read from the cache."""

    @property
    def standing(self) -> Standing:
        return _STANDINGS[self.outcome]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]

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
