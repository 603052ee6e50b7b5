"""What other programs on the machine do to a program's time, and to what can be said about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.profile import ProcessProfile, WorkerUse, percent_text
from whygpu.profiling.attribution import Spent
from whygpu.profiling.steps import StepsFound

NO_CORES = 0.1
"""Of the cores; if fewer are idle, more processes only take turns."""
CROWDED = 0.1
"""Of the time; above it, the answer says that the machine was busy with something else."""
OWN_CORES = 0.8
"""Of the cores; if the program itself uses more, it waits for its own threads."""
SURELY = 0.1
"""What is named takes at least this share: by the lower end of its margin, and whatever the other
programs did."""


class Crowding(NamedTuple):
    cores: int
    waited: float
    """The share of the time in which the main thread was ready and waited for a core."""
    free: float | None
    """How many cores had nothing to do; None if it is not known."""
    used: float = 0.0
    """How many cores the program used, with the processes that it started."""
    threads_waited: float = 0.0
    """The share of the time in which a thread of the framework was ready and waited for a core."""

    @property
    def is_full(self) -> bool:
        return self.free is not None and self.free < NO_CORES * self.cores

    def notes(self) -> Iterator[str]:
        if self.waited >= CROWDED:
            yield (
                f"for {percent_text(self.waited)} of the time the main thread waited for a free "
                f"core: {self._who_has_the_cores}"
            )
        if self.threads_waited >= CROWDED:
            yield (
                f"for {percent_text(self.threads_waited)} of the time a thread of the framework "
                "waited for a free core, and others may have waited for it: on such a machine, "
                "fewer threads may be faster (OMP_NUM_THREADS, torch.set_num_threads())"
            )
        if self.is_full:
            yield (
                "no core of the machine was idle: what would use more of them would not be faster "
                "here"
            )

    @property
    def _who_has_the_cores(self) -> str:
        if self.used >= OWN_CORES * self.cores:
            return (
                f"the program's own threads and processes use {self.used:.1f} of {self.cores} "
                "cores, so fewer of them may be faster (OMP_NUM_THREADS, torch.set_num_threads(), "
                "num_workers)"
            )
        return (
            f"more runs on this machine than its {self.cores} cores can do (this program uses "
            f"{self.used:.1f} of them), so times vary"
        )

    def doubt(self, spent: Spent, seconds: float, *, of_own_threads: bool) -> str:
        """Why what was spent on one thing may be due to other programs; empty if it is not.

        During what the thread waited for a core is not known. At worst, all of that was while it
        did this one thing; its processor time is its own. `of_own_threads` if it waited for
        threads of the framework that only compute: those wait for cores as well, unseen.
        """
        if of_own_threads and self.is_full:
            return "no core of the machine was idle, and what it waits for needs one"
        alone = seconds * (1 - self.waited)
        certain = max(spent.thread_seconds, spent.seconds - self.waited * seconds)
        if self.waited < CROWDED or certain >= SURELY * alone:
            return ""
        waited = percent_text(self.waited)
        return (
            f"the main thread waited for a free core for {waited} of the time, and that may be why"
        )

    def hides(self, largest: float, computing: float, least: float) -> str:
        """Why something that takes the share `largest` may take more than `least` elsewhere; empty
        if it does not: threads that compute together wait for the last of them, and that may be
        all of what its wait for a core took."""
        elsewhere = largest / max(1 - min(self.threads_waited, computing), 0.01)
        if self.threads_waited < CROWDED or not largest < least <= elsewhere:
            return ""
        return (
            f"a thread of the framework waited for a free core for "
            f"{percent_text(self.threads_waited)} of the time, and computing may have taken longer "
            f"because of that: what took {percent_text(largest)} here may take up to "
            f"{percent_text(min(elsewhere, 1.0))} on a free machine"
        )


def crowding_of(profile: ProcessProfile, steps: StepsFound) -> Crowding:
    free = rate(profile.idle, steps) if profile.idle is not None else None
    waited = rate(profile.waited, steps) if profile.waited is not None else None
    used = sum(rate(each, steps) or 0.0 for each in (_own_time(profile), *profile.workers))
    threads = rate(profile.threads_waited, steps) if profile.threads_waited is not None else None
    return Crowding(profile.cores, min(waited or 0.0, 1.0), free, used, min(threads or 0.0, 1.0))


def _own_time(profile: ProcessProfile) -> WorkerUse:
    return WorkerUse(0, profile.times, profile.process_seconds)


def rate(curve: WorkerUse, steps: StepsFound) -> float | None:
    """How fast a curve of seconds grew in the window; None if it does not cover half of it."""
    inside = [
        (time, seconds)
        for time, seconds in zip(curve.times, curve.seconds, strict=False)
        if steps.begin <= time <= steps.end
    ]
    elapsed = inside[-1][0] - inside[0][0] if inside else 0.0
    if elapsed <= 0.5 * steps.window.seconds:
        return None
    return (inside[-1][1] - inside[0][1]) / elapsed
