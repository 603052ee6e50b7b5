"""Divides the time of the profiled steps among categories."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from whygpu.model.profile import (
    Category,
    CodePlace,
    ProcessProfile,
    SourceLine,
    StepWindow,
    TimeShare,
)
from whygpu.profiling.stack_kinds import (
    StackKind,
    kind_of,
    may_be_of_the_step,
    names_evaluation,
    training_frame,
)
from whygpu.profiling.steps import StepsFound

OTHERS_BUSY = 0.5
"""Cores: if other threads of the process use more than this, they are computing."""
LIMITED_BY_JAX = 0.3
"""If the program is in JAX for less of the time, it does not wait for what JAX computes."""
LONGEST_TEXT = 60
LONGER = 1.2
"""Times: what is done in a few of the steps only makes these so much longer than the others."""
SEEN_OFTEN = 0.3
"""Samples for each step: with fewer, the lengths of steps say more than how many have a sample."""
AS_BY_CHANCE = 0.75
FEWEST_SEEN = 20


class Sample(NamedTuple):
    """A stretch of time that ends with a sampled stack."""

    seconds: float
    kind: StackKind
    thread_seconds: float
    """Processor time of the sampled thread in that stretch."""
    process_seconds: float
    end: float


class Spent(NamedTuple):
    """What one category took, in seconds of the window."""

    seconds: float
    thread_seconds: float
    process_seconds: float


def enclosing_functions(profile: ProcessProfile, steps: StepsFound) -> frozenset[tuple[str, str]]:
    """The program's functions that are on the stack while a training step is made.

    If steps are short beside everything else, no sample may show one.
    """
    found: set[tuple[str, str]] = set()
    for around in steps.marks.around:
        if steps.family == "torch" or not any(names_evaluation(each.function) for each in around):
            found.update((each.file, each.function) for each in around)
    for numbers in profile.stacks:
        stack = [profile.places[number] for number in numbers]
        shown = training_frame(stack, steps.family, steps.step_name)
        if shown is not None:
            outside = [frame for frame in stack[shown:] if frame.origin == "program"]
            found |= {(frame.file, frame.function) for frame in outside}
    return frozenset(found)


def evaluating_in_each_step(
    profile: ProcessProfile, begin: float, end: float, step_ends: Sequence[float]
) -> frozenset[tuple[str, str]]:
    """The program's functions whose name may say that they evaluate, and that each step calls.

    Not every step has a sample of them. If only some steps called them, their samples would be in
    fewer steps than chance would put them, and these steps would take longer than the others.
    """
    ends = [time for time in step_ends if begin <= time <= end]
    functions = {
        number: (place.file, place.function)
        for number, place in enumerate(profile.places)
        if place.origin == "program" and may_be_of_the_step(place.function)
    }
    met: dict[tuple[str, str], list[int]] = {function: [] for function in functions.values()}
    if not met:
        return frozenset()
    called = [functions.keys() & set(stack) for stack in profile.stacks]
    for time, stack in zip(profile.times, profile.stack_of, strict=False):
        if begin < time <= end:
            for function in {functions[number] for number in called[stack]}:
                met[function].append(bisect_left(ends, time))
    return frozenset(
        function
        for function, samples in met.items()
        if len(samples) >= FEWEST_SEEN and is_spread(ends, samples)
    )


def is_spread(ends: Sequence[float], samples: Sequence[int]) -> bool:
    """Whether samples, by the numbers of their steps, are in steps as chance would have it."""
    lengths = {number: ends[number] - ends[number - 1] for number in range(1, len(ends))}
    steps = set(samples)
    inside = [seconds for number, seconds in lengths.items() if number in steps]
    outside = [seconds for number, seconds in lengths.items() if number not in steps]
    if not inside or not outside:
        return bool(inside)
    rate = len(samples) / len(lengths)
    if rate < SEEN_OFTEN:
        return median(inside) < LONGER * median(outside)
    return len(inside) / len(lengths) > AS_BY_CHANCE * (1 - math.exp(-rate))


def samples_of(
    profile: ProcessProfile,
    begin: float,
    end: float,
    *,
    on_gpu: bool,
    enclosing: Collection[tuple[str, str]] = (),
    evaluating: Mapping[int, CodePlace] = MappingProxyType({}),
    family: str = "",
) -> list[Sample]:
    """The samples of a window, each with its kind.

    `enclosing` has (file, function) of the program's functions that belong to the training loop,
    `evaluating` the numbers of stacks that belong to an evaluation, with the place of its call.
    """
    kinds: dict[int, StackKind] = {}
    found = []
    for number in range(1, len(profile.times)):
        since, until = profile.times[number - 1], profile.times[number]
        seconds = min(until, end) - max(since, begin)
        if seconds <= 0:
            continue
        part = seconds / max(until - since, 1e-9)
        thread = part * _difference(profile.thread_seconds, number)
        process = part * _difference(profile.process_seconds, number)
        at = profile.stack_of[number]
        if at not in kinds:
            stack = [profile.places[place] for place in profile.stacks[at]]
            kinds[at] = kind_of(stack, enclosing, on_gpu)
            if at in evaluating:
                kinds[at] = as_evaluation(kinds[at], evaluating[at])
        found.append(Sample(seconds, kinds[at], thread, process, min(until, end)))
    # Whether a GPU computes meanwhile is recorded.
    return _with_overlap(found) if family == "jax" and not on_gpu else found


def as_evaluation(kind: StackKind, where: CodePlace | None = None) -> StackKind:
    """This kind, in an evaluation. Compilation and the like stay what they are."""
    if kind.category in _STAYS:
        return kind
    return kind._replace(category="evaluation", source="", where=where or kind.where)


_STAYS: frozenset[Category] = frozenset(("compilation", "checkpointing", "logging", "evaluation"))


def _with_overlap(samples: list[Sample]) -> list[Sample]:
    """JAX returns before it has computed: meanwhile, the next batch costs nothing.

    Unless the program hardly ever waits for JAX: then JAX is the faster of the two.
    """
    whole = sum(sample.seconds for sample in samples)
    waited = sum(each.seconds for each in samples if each.kind.category == "computing")
    if waited < LIMITED_BY_JAX * whole:
        return samples
    return [_computing_behind(sample) for sample in samples]


def _computing_behind(sample: Sample) -> Sample:
    others = (sample.process_seconds - sample.thread_seconds) / sample.seconds
    aside = sample.kind.category in ("input", "program")
    if not aside or sample.thread_seconds <= 0 or others <= OTHERS_BUSY:
        return sample
    return sample._replace(kind=sample.kind._replace(category="computing"))


def _difference(curve: Sequence[float], number: int) -> float:
    return max(curve[number] - curve[number - 1], 0.0) if number < len(curve) else 0.0


def spent_by(samples: Sequence[Sample]) -> dict[Category, Spent]:
    totals: dict[Category, Spent] = {}
    for sample in samples:
        known = totals.get(sample.kind.category, Spent(0.0, 0.0, 0.0))
        totals[sample.kind.category] = Spent(
            known.seconds + sample.seconds,
            known.thread_seconds + sample.thread_seconds,
            known.process_seconds + sample.process_seconds,
        )
    return totals


def shares_of(samples: Sequence[Sample], window: StepWindow, detail: str) -> tuple[TimeShare, ...]:
    """The largest first. Time without a sample is of unknown kind."""
    shares = []
    covered = sum(sample.seconds for sample in samples)
    whole = max(window.seconds, covered, 1e-9)
    totals = spent_by(samples)
    missing = whole - covered
    if missing > 0.001 * whole:
        known = totals.get("unknown", Spent(0.0, 0.0, 0.0))
        totals["unknown"] = known._replace(seconds=known.seconds + missing)
    for category, spent in totals.items():
        chosen = [sample for sample in samples if sample.kind.category == category]
        where, inside = _main_lines(chosen)
        shown = detail if category == "input" else ""
        shares.append(TimeShare(category, spent.seconds / whole, where, inside, shown))
    return tuple(sorted(shares, key=lambda share: -share.share))


def _main_lines(samples: Sequence[Sample]) -> tuple[SourceLine | None, SourceLine | None]:
    """The line that most of the time belongs to, and the line inside what it calls."""
    totals: dict[tuple[str, int], float] = {}
    for sample in samples:
        where = sample.kind.where
        if where is not None:
            key = (where.file, where.line)
            totals[key] = totals.get(key, 0.0) + sample.seconds
    if not totals:
        return None, None
    best = max(totals, key=lambda key: totals[key])
    there = [
        sample
        for sample in samples
        if sample.kind.where is not None
        and (sample.kind.where.file, sample.kind.where.line) == best
    ]
    shown = _widest([(sample.kind.where, sample.seconds) for sample in there])
    lines: dict[SourceLine, float] = {}
    for sample in there:
        if sample.kind.inside is not None:
            line = _shown(sample.kind.inside)
            lines[line] = lines.get(line, 0.0) + sample.seconds
    inside = max(lines, key=lambda line: lines[line]) if lines else None
    same = inside is not None and (inside.file, inside.line) == (shown.file, shown.line)
    return shown, None if same else inside


def _widest(places: Sequence[tuple[CodePlace | None, float]]) -> SourceLine:
    """One line may be executing different expressions: the one that took longest, with what is
    around it. Another statement of the same line is not."""
    seconds: dict[CodePlace, float] = {}
    for place, spent in places:
        if place is not None:
            seconds[place] = seconds.get(place, 0.0) + spent
    longest = max(seconds, key=lambda place: seconds[place])
    return _shown(
        max(
            (place for place in seconds if longest.text in place.text),
            key=lambda place: len(place.text),
        )
    )


def _shown(place: CodePlace) -> SourceLine:
    text = place.text
    return SourceLine(
        place.file, place.line, text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
    )
