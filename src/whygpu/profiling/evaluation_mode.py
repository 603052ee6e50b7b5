"""Finds evaluations of PyTorch models that no name shows: run_epoch(model, data, optimizer=None).

The program says it by model.eval(): between two steps of the optimizer, its model computes in
evaluation mode, and nothing computes gradients. A model that acts in an environment may do the
same, so nothing is concluded where there is a sign of one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from whygpu.model.profile import CodePlace, ProcessProfile
from whygpu.profiling.attribution import Sample, as_evaluation
from whygpu.profiling.forward_only import FAMILIES, long_pauses
from whygpu.profiling.stack_kinds import training_frame, words_of
from whygpu.profiling.steps import StepsFound

FEWEST = 20
"""Samples in which a model computed in evaluation mode."""
_MODULES = "torch/nn/modules/module.py"
_ENVIRONMENTS = (
    "gym/",
    "gymnasium/",
    "pettingzoo/",
    "stable_baselines3/",
    "sb3_contrib/",
    "torchrl/",
    "tianshou/",
    "dm_env/",
    "dm_control/",
)
_ACTING = frozenset(
    (
        "env",
        "envs",
        "environment",
        "rollout",
        "rollouts",
        "act",
        "action",
        "actions",
        "episode",
        "episodes",
        "explore",
        "trajectory",
        "trajectories",
        "game",
        "play",
        "simulate",
    )
)
"""Words for what an agent does. Its model may be in evaluation mode meanwhile."""


def with_evaluation_mode(
    samples: list[Sample], profile: ProcessProfile, steps: StepsFound
) -> list[Sample]:
    """Samples from the first to the last in evaluation mode between two steps are evaluation."""
    if steps.family not in FAMILIES or steps.marks.stride > 1:
        return samples
    modes = [_mode([profile.places[place] for place in stack]) for stack in profile.stacks]
    if "evaluation" not in modes:
        return samples
    found = list(_evaluations(profile, steps, modes))
    if sum(count for _, _, count in found) < FEWEST:
        return samples
    if any(_acts(profile, begin, end) for begin, end, _ in found):
        return samples
    changed = list(samples)
    for begin, end, _ in found:
        first = bisect_left(samples, begin, key=lambda sample: sample.end)
        for number in range(first, len(samples)):
            sample = samples[number]
            if sample.end > end:
                break
            changed[number] = sample._replace(kind=as_evaluation(sample.kind))
    return changed


def _evaluations(
    profile: ProcessProfile, steps: StepsFound, modes: Sequence[str]
) -> Iterator[tuple[float, float, int]]:
    """(time of the first sample, of the last one, how many of them are in evaluation mode)"""
    times = profile.times
    trains = [
        modes[number] == "training"
        or training_frame([profile.places[place] for place in stack], "torch", "") is not None
        for number, stack in enumerate(profile.stacks)
    ]
    for before, after in long_pauses(steps):
        inside = range(bisect_left(times, before), bisect_left(times, after))
        evaluating = [at for at in inside if modes[profile.stack_of[at]] == "evaluation"]
        if not evaluating:
            continue
        first, last = evaluating[0], evaluating[-1]
        if not any(trains[profile.stack_of[at]] for at in range(first, last)):
            yield times[first], times[last], len(evaluating)


def _mode(stack: Sequence[CodePlace]) -> str:
    """The mode of the outermost module that computes; empty if none does, or it is not known."""
    return next((f.mode for f in reversed(stack) if f.mode and f.file == _MODULES), "")


def _acts(profile: ProcessProfile, begin: float, end: float) -> bool:
    """Whether something shows that an agent acted in an environment in that time."""
    inside = range(bisect_left(profile.times, begin), bisect_left(profile.times, end) + 1)
    stacks = {profile.stack_of[at] for at in inside if at < len(profile.times)}
    places = {place for number in stacks for place in profile.stacks[number]}
    return any(is_of_agent(profile.places[place]) for place in places)


def is_of_agent(place: CodePlace) -> bool:
    if place.origin != "program":
        return place.file.startswith(_ENVIRONMENTS)
    return not _ACTING.isdisjoint(words_of(place.function) + words_of(place.text))
