"""What a profile of TensorFlow says about the input pipeline of compiled functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from whygpu.model.device_recording import Span
from whygpu.model.profile import FrameworkProfile, ProcessProfile, StageTime
from whygpu.profiling.spans import common, joined, seconds_of
from whygpu.profiling.steps import StepsFound
from whygpu.profiling.xplane import HOST, Plane, PlaneEvent

_FUNCTION = ("EagerLocalExecute: __inference", "SessionRun")
"""Names of events that last as long as a compiled function runs."""
_NEXT = "IteratorGetNextOp::DoCompute"
_STAGE = "Iterator::"
PYTHON_MATTERS = 0.2
"""Of the time for which the step waited for tf.data: what Python functions must take so that
Python's lock may limit it."""
_KEEPING = ("Root", "Prefetch")
"""Stages that wait for a thread of their own, and have no work themselves."""


def is_of_pipeline(name: str) -> bool:
    """Whether the summary needs events of this name."""
    return name == _NEXT or name.startswith((_STAGE, *_FUNCTION))


def summary(planes: Sequence[Plane]) -> FrameworkProfile | None:
    """What the profile says about compiled functions; None if none of them ran."""
    host = [event for plane in planes if plane.name == HOST for event in plane.events]
    functions = _spans(host, lambda name: name.startswith(_FUNCTION))
    if not functions:
        return None
    return FrameworkProfile(
        seconds=seconds_of(functions),
        input_seconds=seconds_of(common(functions, input_waits(host))),
        stages=_stages(host),
    )


def input_waits(host: Sequence[PlaneEvent]) -> list[Span]:
    """When the next batch was waited for."""
    waiting = _spans(host, lambda name: name == _NEXT)
    working = _spans(host, _is_work)
    # A batch that was ready is handed over to the step. On busy cores that takes time as well,
    # but no other pipeline would make it faster.
    return common(waiting, working) if working else waiting


def _spans(events: Iterable[PlaneEvent], wanted: Callable[[str], bool]) -> list[Span]:
    return joined(event.span() for event in events if wanted(event.name))


def _is_work(name: str) -> bool:
    """Whether a stage of the pipeline makes an element: not one that only keeps them."""
    return name.startswith(_STAGE) and _stage(name) not in _KEEPING


def _stage(name: str) -> str:
    return name.partition("#")[0].rpartition("::")[2]


def _stages(events: Iterable[PlaneEvent]) -> tuple[StageTime, ...]:
    """The stages of the input pipeline, the costliest first.

    The name of a stage contains the names of those that take its elements:
    Iterator::Root::Prefetch::Map. What a stage takes itself is its time without that of its inputs.
    """
    totals: dict[str, int] = {}
    for event in events:
        if event.name.startswith(_STAGE):
            name = _without_numbers(event.name.partition("#")[0])
            totals[name] = totals.get(name, 0) + event.end - event.begin
    own = {}
    for name, total in totals.items():
        inputs = sum(totals[other] for other in totals if other.rpartition("::")[0] == name)
        own[name] = max(total - inputs, 0)
    ordered = sorted(own, key=lambda name: -own[name])
    return tuple(
        StageTime(_stage(name), own[name] / 1e12)
        for name in ordered
        if _stage(name) not in _KEEPING
    )


def _without_numbers(name: str) -> str:
    """Iterator::Root::FlatMap[0]::Generator is an input of Iterator::Root::FlatMap."""
    return "::".join(part.partition("[")[0] for part in name.split("::"))


def python_stage(profile: ProcessProfile, waited: float, steps: StepsFound) -> str:
    """The Python function that a pipeline may be limited by; empty if none is.

    `waited` are the seconds of the window for which the step waited for tf.data. Which calls are
    the pipeline's is not known: those of the step itself count, too. All are taken to come after
    the first steps: what a program does before them, as importing, may take longer than the rest.
    """
    longest = max(profile.python_calls, key=lambda each: each.seconds, default=None)
    if longest is None:
        return ""
    total = sum(each.seconds for each in profile.python_calls)
    of_the_window = total * steps.window.seconds / max(profile.seconds - steps.begin, 1e-9)
    return longest.name if of_the_window >= PYTHON_MATTERS * waited else ""
