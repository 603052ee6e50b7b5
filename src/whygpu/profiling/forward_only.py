"""Finds computing between two steps that belongs to no training step.

A function that both trains and evaluates, run_epoch(model, data, train=False), has no name that
says so. But while it evaluates, no optimizer makes a step, and nothing computes gradients.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from statistics import median

from whygpu.model.profile import ProcessProfile
from whygpu.profiling.attribution import Sample
from whygpu.profiling.stack_kinds import training_frame
from whygpu.profiling.steps import StepsFound

LONGER = 3.0
"""Times: the distance of two steps between which there may be an evaluation."""
USUALLY_TRAINS = 0.2
"""Of the samples: if gradients and updates are not seen at least so often, their absence between
two steps shows nothing."""
HARDLY_TRAINS = 0.1
"""Of what is usual."""
FEWEST_EXPECTED = 3
"""Samples of training that a part of the time would show at the usual rate. By chance, it shows
none in one of 20 cases."""
FAMILIES = ("torch",)
"""Frameworks whose operations are done, or at least launched, where the program calls them."""


def seconds_without_training(
    profile: ProcessProfile, steps: StepsFound, samples: Sequence[Sample]
) -> float:
    """Seconds of the window in which the program computed for no step; 0 if that is not known."""
    if steps.family not in FAMILIES or steps.marks.stride > 1:
        return 0.0
    stretches = list(long_pauses(steps))
    training = frozenset(_times_of_training(profile, steps))
    seen = [time for time in profile.times if steps.begin < time <= steps.end]
    outside = [time for time in seen if not any(a < time <= b for a, b in stretches)]
    rate = _share(training, outside)
    if not stretches or rate < USUALLY_TRAINS:
        return 0.0
    found, short, in_short = 0.0, 0.0, []
    for begin, end in stretches:
        inside = [time for time in seen if begin < time <= end]
        if len(inside) * rate < FEWEST_EXPECTED:
            # Evaluations may be short, and many.
            short += sum(_computing(samples, begin, end))
            in_short += inside
        elif _share(training, inside) < HARDLY_TRAINS * rate:
            found += sum(_computing(samples, begin, end))
    enough = len(in_short) * rate >= FEWEST_EXPECTED
    hardly = _share(training, in_short) < HARDLY_TRAINS * rate
    return found + short if enough and hardly else found


def long_pauses(steps: StepsFound) -> Iterator[tuple[float, float]]:
    """Where the next step ended much later than usual: the time until that step may have begun."""
    ends = [time for time in steps.marks.times if steps.begin <= time <= steps.end]
    if len(ends) < 3:
        return
    usual = median(after - before for before, after in pairwise(ends))
    for before, after in pairwise(ends):
        if after - before > LONGER * usual:
            yield before, after - usual


def doubt(seconds: float, whole: float) -> str:
    """Why an answer that calls this computing is not clear."""
    return (
        f"for {100 * seconds / whole:.0f}% of the time the program computed without gradients and "
        "without a step of an optimizer: an evaluation, or work of the training, as in "
        "reinforcement learning"
    )


def _times_of_training(profile: ProcessProfile, steps: StepsFound) -> list[float]:
    """When a sample was taken inside of a training step."""
    trains = [
        training_frame([profile.places[place] for place in stack], steps.family, steps.step_name)
        is not None
        for stack in profile.stacks
    ]
    return [time for time, at in zip(profile.times, profile.stack_of, strict=False) if trains[at]]


def _share(training: Collection[float], times: Sequence[float]) -> float:
    """The part of these times, of samples, at which the program trained."""
    return sum(time in training for time in times) / len(times) if times else 0.0


def _computing(samples: Sequence[Sample], begin: float, end: float) -> Iterator[float]:
    first = bisect_left(samples, begin, key=lambda sample: sample.end)
    for sample in samples[first:]:
        if sample.end > end:
            return
        if sample.kind.category == "computing":
            yield sample.seconds
