"""Divides the time of the steps by what the GPU did, and by why it did nothing.

While the framework's profiler ran, each moment has two sides: what the GPU did, and what the thread
that trains did. If the GPU computed, or only copied, that is what the time was spent on. If it was
idle, what the thread did is the reason. What was found in these moments is applied to the rest of
the run, in which only the thread was sampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from whygpu.model.device_recording import DeviceRecording, Span
from whygpu.model.profile import Category
from whygpu.profiling.attribution import Sample
from whygpu.profiling.spans import Lookup, common, joined, seconds_of, without
from whygpu.profiling.stack_kinds import StackKind

State = Literal["computing", "copying", "idle"]

LONG_GAP = 0.001
"""Seconds without any call of CUDA, while the program is in the framework: it computes on the CPU.
A program that launches kernels makes a call every 10 to 100 microseconds."""
_CATEGORIES: Mapping[State, Category] = {
    "computing": "computing",
    "copying": "copies",
    "idle": "unknown",
}
_OWN_TIME: frozenset[Category] = frozenset({"evaluation", "compilation"})
"""Their time is theirs, whether the GPU computes for them or not."""


_Shares = Mapping[Category, Mapping[Category, float]]
"""For what the thread did: which categories its time belongs to."""


class DeviceStates(NamedTuple):
    """What the GPU did in the recording, without the time that is left out of the samples."""

    computing: tuple[Span, ...]
    copying: tuple[Span, ...]
    """Copies, and no kernel."""
    seconds: float
    drained: float
    """Seconds of kernels after the end of the recording: of steps that were launched in it."""

    def share(self, state: State) -> float:
        parts = {"computing": self.computing, "copying": self.copying}
        if state != "idle":
            return seconds_of(parts[state]) / self.seconds
        return max(1.0 - self.share("computing") - self.share("copying"), 0.0)


class DeviceTime(NamedTuple):
    """The samples of a window with their reasons, and what the recording itself showed."""

    inside: list[Sample]
    """Of the recording."""
    outside: list[Sample]
    """Each is divided into parts, as in the recording."""
    states: DeviceStates
    recorded: list[Sample]
    """Those inside of the recording, as they were taken."""
    others: list[Sample]
    """Those outside, as they were taken."""
    waited: float
    """The share of the recording in which the thread waited for the GPU."""

    @property
    def samples(self) -> list[Sample]:
        """Of the whole window, with their reasons."""
        return self.inside + self.outside

    @property
    def taken(self) -> list[Sample]:
        """The same, with what the thread did."""
        return self.recorded + self.others


def states_of(recording: DeviceRecording, samples: Sequence[Sample]) -> DeviceStates:
    """In the time of these samples, which are those of the recording."""
    sampled = joined(Span(each.end - each.seconds, each.end) for each in samples)
    whole = common([Span(recording.begin, recording.end)], sampled)
    kernels = joined(recording.kernels)
    computing = common(kernels, whole)
    copying = without(common(joined(recording.copies), whole), computing)
    return DeviceStates(
        tuple(computing),
        tuple(copying),
        max(seconds_of(whole), 1e-9),
        seconds_of(common(kernels, [Span(recording.end, math.inf)])),
    )


def divided(
    samples: Sequence[Sample],
    recording: DeviceRecording,
    *,
    inner_source: str = "tf.data",
    slowed: float = 1.0,
) -> DeviceTime:
    """Without samples in the recording, there are none with reasons.

    `inner_source` is the kind of pipeline that a compiled function waits for. Steps took `slowed`
    times as long while the profiler ran; what the GPU computes in a step does not take longer.
    """
    inside = [each for each in samples if recording.begin < each.end <= recording.end]
    states = states_of(recording, inside)
    outside = [each for each in samples if not recording.begin < each.end <= recording.end]
    if not inside:
        return DeviceTime([], [], states, [], outside, 0.0)
    resolved = _resolved(inside, states, recording, inner_source)
    waiting = [each for each in resolved if each.waits]
    waited = sum(each.sample.seconds for each in waiting)
    whole = sum(each.sample.seconds for each in resolved)
    blamed = _main_kind(waiting)
    charged = _with_waits(_balanced(resolved, states), waited, blamed)
    shares = _with_more_computing(_shares_by_thread(charged), slowed)
    return DeviceTime(
        [each.sample for each in charged],
        _applied(outside, shares, blamed, inner_source),
        states,
        inside,
        outside,
        waited / max(whole, 1e-9),
    )


class _Resolved(NamedTuple):
    sample: Sample
    """With the category that its time belongs to."""
    thread: Category
    """What the stack showed."""
    waits: bool
    """The thread waited for the GPU."""
    state: State


def _resolved(
    samples: Sequence[Sample],
    states: DeviceStates,
    recording: DeviceRecording,
    inner_source: str,
) -> list[_Resolved]:
    computing, copying = Lookup(states.computing), Lookup(states.copying)
    reasons = _Reasons(recording)
    found = []
    for sample in samples:
        busy: State = "copying" if sample.end in copying else "idle"
        state: State = "computing" if sample.end in computing else busy
        thread = reasons.of_thread(sample, state)
        category = _category(thread, state, reasons, sample.end)
        waits = thread == "synchronisation"
        resolved = _as(sample, category, inner_source)
        found.append(_Resolved(resolved, sample.kind.category, waits, state))
    return found


class _Reasons:
    """What calls of CUDA, and the framework's own events, say about a moment."""

    def __init__(self, recording: DeviceRecording) -> None:
        self._waits = Lookup(recording.waits)
        self._input = Lookup(recording.input_waits)
        self._staging = Lookup(joined(recording.staging))
        self._calls = Lookup(recording.calls)
        self._has_calls = bool(recording.calls)

    def of_thread(self, sample: Sample, state: State) -> Category:
        category, moment = sample.kind.category, sample.end
        if category == "computing" and moment in self._waits:
            return "synchronisation"
        if category == "synchronisation" and state == "idle" and moment in self._staging:
            # The GPU waits as well: for the data that another thread prepares for its copy.
            return "copies"
        if category == "synchronisation" and self._calls_nothing(moment):
            # tolist() of a tensor that is on the CPU, for example.
            return "program"
        return category

    def _calls_nothing(self, moment: float) -> bool:
        """Calls of CUDA were recorded, and none of them was under way."""
        return self._has_calls and moment not in self._waits and moment not in self._calls

    def of_idle(self, moment: float) -> Category:
        """Why the GPU is idle while the thread is in the framework."""
        if moment in self._input:
            return "input"
        if moment in self._staging:
            return "copies"
        gap = self._calls.gap(moment)
        return "cpu-operations" if gap is not None and gap.seconds >= LONG_GAP else "launches"


def _category(host: Category, state: State, reasons: _Reasons, moment: float) -> Category:
    if host in _OWN_TIME:
        return host
    if state != "idle":
        return "computing" if state == "computing" else "copies"
    return reasons.of_idle(moment) if host == "computing" else host


def _as(sample: Sample, category: Category, inner_source: str) -> Sample:
    if sample.kind.category == category:
        return sample
    source = inner_source if category == "input" else ""
    return sample._replace(kind=sample.kind._replace(category=category, source=source))


def _balanced(resolved: Sequence[_Resolved], states: DeviceStates) -> list[_Resolved]:
    """Samples show how often the GPU was seen idle, but how long it was is known exactly."""
    whole = sum(each.sample.seconds for each in resolved)
    found: list[_Resolved] = []
    for state, category in _CATEGORIES.items():
        met = [each for each in resolved if each.state == state]
        seen = sum(each.sample.seconds for each in met)
        exact = states.share(state) * whole
        if seen > 0:
            found += [each._replace(sample=part(each.sample, exact / seen)) for each in met]
        elif exact > 0:
            # Too short for a sample. Nobody knows what the thread did.
            unseen = Sample(exact, StackKind(category, None, None), 0.0, 0.0, 0.0)
            found.append(_Resolved(unseen, "unknown", waits=False, state=state))
    return found


def _with_waits(
    resolved: Sequence[_Resolved], waited: float, blamed: StackKind | None
) -> list[_Resolved]:
    """Charge waiting for the GPU with the idle time that follows it.

    After a wait the GPU has nothing to do until the next work is launched. Without the waits, the
    program would launch ahead while the GPU computes: a step would take as long as the longer of
    the two. So the waits cost as much of the idle time as they are long, and not more.
    """
    launching = _seconds(resolved, "launches")
    moved = min(launching, max(waited - _seconds(resolved, "synchronisation"), 0.0))
    if blamed is None or moved <= 0:
        return list(resolved)
    share = moved / launching
    found = []
    for each in resolved:
        if each.sample.kind.category != "launches":
            found.append(each)
            continue
        found.append(each._replace(sample=part(each.sample, 1 - share)))
        found.append(each._replace(sample=part(_waiting(each.sample, blamed), share)))
    return found


def _seconds(resolved: Sequence[_Resolved], category: Category) -> float:
    return sum(e.sample.seconds for e in resolved if e.sample.kind.category == category)


def _waiting(sample: Sample, blamed: StackKind) -> Sample:
    """The time of this sample is due to a wait at another line."""
    return sample._replace(kind=blamed._replace(category="synchronisation"))


def _main_kind(resolved: Sequence[_Resolved]) -> StackKind | None:
    """The kind, with its line, of most of these samples."""
    totals: dict[StackKind, float] = {}
    for each in resolved:
        totals[each.sample.kind] = totals.get(each.sample.kind, 0.0) + each.sample.seconds
    return max(totals, key=lambda kind: totals[kind]) if totals else None


def _applied(
    samples: Sequence[Sample],
    shares: _Shares,
    blamed: StackKind | None,
    inner_source: str,
) -> list[Sample]:
    """Divide what the thread did outside of the recording as inside of it."""
    found = []
    for sample in samples:
        thread = sample.kind.category
        for category, share in shares.get(thread, {thread: 1.0}).items():
            if category == "synchronisation" != thread and blamed is not None:
                whole = _waiting(sample, blamed)
            else:
                whole = _as(sample, category, inner_source)
            found.append(part(whole, share))
    return found


def _with_more_computing(shares: _Shares, factor: float) -> _Shares:
    """The shares of steps that are that much shorter, with the same computing in them."""
    found = {}
    for thread, parts in shares.items():
        computing = parts.get("computing", 0.0)
        more = min(computing * factor, 1.0)
        rest = (1 - more) / (1 - computing) if computing < 1 else 0.0
        found[thread] = {
            name: more if name == "computing" else share * rest for name, share in parts.items()
        }
    return found


def _shares_by_thread(recorded: Sequence[_Resolved]) -> _Shares:
    totals: dict[Category, dict[Category, float]] = {}
    for each in recorded:
        parts = totals.setdefault(each.thread, {})
        category = each.sample.kind.category
        parts[category] = parts.get(category, 0.0) + each.sample.seconds
    return {
        thread: {name: seconds / max(sum(parts.values()), 1e-9) for name, seconds in parts.items()}
        for thread, parts in totals.items()
    }


def part(sample: Sample, share: float) -> Sample:
    """A share of a sample's time."""
    return sample._replace(
        seconds=sample.seconds * share,
        thread_seconds=sample.thread_seconds * share,
        process_seconds=sample.process_seconds * share,
    )
