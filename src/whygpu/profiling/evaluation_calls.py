"""Finds evaluations by the call that makes them: run_epoch(model, data, optimizer=None).

A function that both trains and evaluates has no name that says so, and its model may stay in
training mode. But it is called in different places of the program: samples of one call show
training, and those of the other never do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from whygpu.model.profile import CodePlace, ProcessProfile
from whygpu.profiling.attribution import is_spread
from whygpu.profiling.evaluation_mode import is_of_agent
from whygpu.profiling.forward_only import HARDLY_TRAINS, USUALLY_TRAINS
from whygpu.profiling.stack_kinds import training_frame
from whygpu.profiling.steps import StepsFound

FEWEST_EXPECTED = 10
"""Samples of training that a call would show if it trained as the other one does: with so many, it
shows none in one of 20,000 cases."""
_Call = tuple[tuple[str, str], CodePlace]
"""A function, as (file, name), and the place that calls it."""


def evaluating_stacks(profile: ProcessProfile, steps: StepsFound) -> Mapping[int, CodePlace]:
    """The numbers of stacks that are inside of such a call, with the place of the call."""
    calls = {number: list(_calls(profile, number)) for number in set(profile.stack_of)}
    trains = {
        number: training_frame(_stack(profile, number), steps.family, steps.step_name)
        for number in calls
    }
    sampled: dict[_Call, list[int]] = {}
    """The numbers of samples inside of each call."""
    trained: dict[_Call, int] = {}
    for at, (time, number) in enumerate(zip(profile.times, profile.stack_of, strict=False)):
        if steps.begin < time <= steps.end:
            shown = trains[number]
            for inner, call in calls[number]:
                sampled.setdefault(call, []).append(at)
                trained[call] = trained.get(call, 0) + (shown is not None and shown <= inner)
    usual: dict[tuple[str, str], float] = {}
    for call, samples in sampled.items():
        if len(samples) * USUALLY_TRAINS >= FEWEST_EXPECTED:
            usual[call[0]] = max(usual.get(call[0], 0.0), trained[call] / len(samples))
    found = {
        call
        for call, samples in sampled.items()
        if _never_trains(len(samples), trained[call], usual.get(call[0], 0.0))
        and not _is_part_of_each_step(profile, steps, samples)
        and not _is_of_agent(profile, samples)
    }
    return {
        number: call[1]
        for number, made in calls.items()
        for _, call in reversed(made)
        if call in found
    }


def _stack(profile: ProcessProfile, number: int) -> list[CodePlace]:
    return [profile.places[place] for place in profile.stacks[number]]


def _calls(profile: ProcessProfile, number: int) -> Iterator[tuple[int, _Call]]:
    """The calls of the program's functions by each other, with the number of the called frame."""
    stack = _stack(profile, number)
    own = [at for at, frame in enumerate(stack) if frame.origin == "program"]
    for inner, outer in pairwise(own):
        yield inner, ((stack[inner].file, stack[inner].function), stack[outer])


def _never_trains(samples: int, trained: int, usual: float) -> bool:
    """`usual` is the share of samples that show training in another call of the function."""
    expected = usual * samples
    return (
        usual >= USUALLY_TRAINS
        and expected >= FEWEST_EXPECTED
        and trained < HARDLY_TRAINS * expected
    )


def _is_part_of_each_step(
    profile: ProcessProfile, steps: StepsFound, samples: Sequence[int]
) -> bool:
    """As where a second model computes what the first one is to learn."""
    ends = [time for time in steps.marks.times if steps.begin <= time <= steps.end]
    return is_spread(ends, [bisect_left(ends, profile.times[at]) for at in samples])


def _is_of_agent(profile: ProcessProfile, samples: Sequence[int]) -> bool:
    stacks = {profile.stack_of[at] for at in samples}
    return any(is_of_agent(place) for number in stacks for place in _stack(profile, number))
