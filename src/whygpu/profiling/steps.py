"""Finds the training steps among the marks of a process, and the window to judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from whygpu.model.device_recording import ProfilerRun
from whygpu.model.profile import ProcessProfile, ProfileOptions, StepMarks, StepWindow

WARM_UP = 10
"""Steps that are left out: frameworks compile, choose algorithms and fill caches in them."""
SHORT_WARM_UP = 2
ENOUGH = 3 * WARM_UP
"""With fewer steps than this, only the first two are left out."""
FEWEST = 5
SLOWED_DOWN = 1.03
"""A profiler that makes steps so many times longer shows in them."""
FEWEST_COMPARED = 10
"""Steps inside and outside of a recording whose lengths can be compared."""

_FAMILIES = ("keras", "torch", "session", "tensorflow", "jax")
"""The first of these that made steps: Keras makes steps of its backend, too."""
_WITHOUT_OPTIMIZER = "torch backward"
_OF_TAPE = "tensorflow GradientTape.gradient"
_MADE_BY = {
    "keras": "batches of fit",
    "torch": "steps of an optimizer",
    "session": "runs of a session",
    "tensorflow": "calls of a tf.function",
    "jax": "calls of a jitted function",
}
_STEP_WORDS = ("step", "train", "update")


class StepsFound(NamedTuple):
    """The window to judge, and what makes its steps."""

    family: str
    window: StepWindow
    begin: float
    """Seconds after the sampling began."""
    end: float
    marks: StepMarks

    @property
    def step_name(self) -> str:
        """The function whose calls are the steps; empty if they are something else."""
        name = _name(self.marks) if self.family in ("tensorflow", "jax") else ""
        # A method has its receiver too, as the program writes it: tape.gradient(...).
        return name.rpartition(".")[2]


def find_steps(
    profile: ProcessProfile, options: ProfileOptions, called: Mapping[str, float]
) -> StepsFound | None:
    """None if there are no steps, or too few in the window.

    `called` has the seconds that the program spent in calls of each name.
    """
    for family in _FAMILIES:
        kinds = [marks for marks in profile.marks if marks.key.partition(" ")[0] == family]
        if not kinds:
            continue
        chosen = _training(family, kinds, called)
        found = _window(family, chosen, options)
        if found is not None:
            return found
    return None


def most_steps(profile: ProcessProfile) -> int:
    kinds = [marks for marks in profile.marks if marks.key.partition(" ")[0] in _FAMILIES]
    return max((marks.seen for marks in _without_backward(kinds)), default=0)


def steps_between(marks: StepMarks, begin: float, end: float) -> int:
    """How many steps ended in a part of the time."""
    return marks.stride * sum(1 for time in marks.times if begin < time <= end)


def slowdown(steps: StepsFound, run: ProfilerRun) -> float | None:
    """How many times longer steps took while the framework's profiler ran; None if too few did."""
    inside, outside = [], []
    for before, now in pairwise(steps.marks.times):
        if before >= run.begin and now <= run.end:
            inside.append(now - before)
        elif before >= steps.begin and not _meets(run.pauses, before, now):
            outside.append(now - before)
    if min(len(inside), len(outside)) < FEWEST_COMPARED:
        return None
    return median(inside) / max(median(outside), 1e-9)


def _meets(pauses: Sequence[Sequence[float]], begin: float, end: float) -> bool:
    return any(len(pause) == 2 and pause[0] < end and pause[1] > begin for pause in pauses)


def _training(family: str, kinds: Sequence[StepMarks], called: Mapping[str, float]) -> StepMarks:
    """The kind of step that the training consists of."""
    if family == "tensorflow":
        kinds = _without_tape(kinds)
    if family in ("session", "tensorflow"):
        return max(kinds, key=lambda marks: marks.busy)
    if family == "torch":
        kinds = _without_backward(kinds)
    if family != "jax":
        return max(kinds, key=lambda marks: marks.seen)

    def weight(marks: StepMarks) -> tuple[bool, float, int]:
        # Operations outside a jitted function are executions as well, and there may be more.
        name = _name(marks)
        return _names_step(name), called.get(name, 0.0), marks.seen

    return max(kinds, key=weight)


def _without_backward(kinds: Sequence[StepMarks]) -> Sequence[StepMarks]:
    """Until the first step of an optimizer, calls of backward() are marked."""
    return [marks for marks in kinds if marks.key != _WITHOUT_OPTIMIZER] or kinds


def _without_tape(kinds: Sequence[StepMarks]) -> Sequence[StepMarks]:
    """Gradients that no tf.function computes are the steps, unless one is named like a step."""
    tape = [marks for marks in kinds if marks.key == _OF_TAPE and marks.seen >= FEWEST]
    others = [marks for marks in kinds if marks.key != _OF_TAPE]
    if tape and not any(_names_step(_name(marks)) for marks in others):
        return tape
    return others or kinds


def _names_step(name: str) -> bool:
    return any(word in name.lower() for word in _STEP_WORDS)


def _name(marks: StepMarks) -> str:
    return marks.key.partition(" ")[2]


def _window(family: str, marks: StepMarks, options: ProfileOptions) -> StepsFound | None:
    first = options.first
    if first is None:
        first = WARM_UP if marks.seen >= ENOUGH else SHORT_WARM_UP
    last = marks.seen if options.last is None else min(options.last, marks.seen)
    numbered = [
        (number * marks.stride, time)
        for number, time in enumerate(marks.times, start=1)
        if first <= number * marks.stride <= last
    ]
    if len(numbered) < FEWEST:
        return None
    (first, begin), (last, end) = numbered[0], numbered[-1]
    made_by = _MADE_BY[family]
    if marks.key == _WITHOUT_OPTIMIZER:
        made_by = "calls of backward()"
    if marks.key == _OF_TAPE:
        made_by = "calls of GradientTape.gradient()"
    elif family in ("tensorflow", "jax"):
        made_by += f" ({_name(marks)})"
    return StepsFound(family, StepWindow(made_by, first, last, end - begin), begin, end, marks)
