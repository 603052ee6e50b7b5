"""Which parts of a policy were in force, judged by what the frameworks themselves reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from whygpu.model.policy import (
    CallOutcome,
    ComparedReading,
    Expectation,
    LaunchPlan,
    PartState,
    PolicyPart,
    ProcessRecord,
    Reading,
)

_ROUNDING = 1 << 20
"""Bytes by which a limit that went through a fraction may be off."""

State = Literal["in-force", "not-in-force", "cannot-tell"]


def parts_in_force(plan: LaunchPlan, records: Sequence[ProcessRecord]) -> tuple[PartState, ...]:
    """For each part of the policy and each framework that the program imported."""
    if not records:
        # It may use no framework, or keep whygpu's part out, as `python -I` does.
        reason = "no process reported a framework"
        parts = dict.fromkeys(each.part for each in plan.expectations)
        return tuple(PartState(part, "", "cannot-tell", (), (), reason) for part in parts)
    imported = {use.name for record in records for use in record.frameworks}
    keys = dict.fromkeys(
        (each.part, each.framework) for each in plan.expectations if each.framework in imported
    )
    return tuple(_state(plan, records, part, framework) for part, framework in keys)


def _state(
    plan: LaunchPlan, records: Sequence[ProcessRecord], part: PolicyPart, framework: str
) -> PartState:
    expectations = [
        each for each in plan.expectations if (each.part, each.framework) == (part, framework)
    ]
    names = {call.name for call in plan.calls if (call.part, call.framework) == (part, framework)}
    users = [
        record for record in records if any(use.name == framework for use in record.frameworks)
    ]
    calls = tuple(
        dict.fromkeys(
            call
            for record in users
            for call in record.calls
            if call.framework == framework and call.name in names
        )
    )
    for each in expectations:
        if each.rule in ("always", "never"):
            state, reason = _without_reading(each, users)
            return PartState(part, framework, state, (), calls, reason)
    pairs = [
        (expectation, reading)
        for record in users
        for expectation in expectations
        for reading in [_reading(record, expectation)]
    ]
    state, reason = _judged(pairs, calls)
    return PartState(part, framework, state, tuple(_compared(pairs)), calls, reason)


def _without_reading(expectation: Expectation, users: Sequence[ProcessRecord]) -> tuple[State, str]:
    if expectation.rule == "always":
        return "in-force", expectation.reason
    devices = [
        device
        for record in users
        for use in record.frameworks
        if use.name == expectation.framework
        for device in use.devices
    ]
    if not devices:
        return "cannot-tell", f"{expectation.reason}, and it started no device"
    if expectation.on_gpu_only and not any(map(_is_gpu, devices)):
        return "cannot-tell", f"{expectation.reason}, and used no GPU"
    return "not-in-force", expectation.reason


def _is_gpu(device: str) -> bool:
    return device.startswith("gpu")


def _reading(record: ProcessRecord, expectation: Expectation) -> Reading:
    framework, name = expectation.framework, expectation.reading
    for reading in record.readings:
        if (reading.framework, reading.name) == (framework, name):
            return reading
    why = "the process ended without a report" if not record.complete else "it was not reported"
    return Reading(framework, name, "unknown", None, why)


def _judged(
    pairs: Sequence[tuple[Expectation, Reading]], calls: Sequence[CallOutcome]
) -> tuple[State, str]:
    """The worst that any process reported. What one did not reach says nothing about the rest."""
    fits = [_fits(each, reading.value) for each, reading in pairs if reading.status == "reported"]
    if False in fits:
        return "not-in-force", ""
    failed = [f"{call.name} failed: {call.reason}" for call in calls if call.outcome == "failed"]
    unknown = [reading.reason for _, reading in pairs if reading.status == "unknown"]
    if unknown or None in fits:
        without_limit = ["the size of the GPU is not known"] if None in fits else []
        return "cannot-tell", _joined([*failed, *unknown, *without_limit])
    if fits:
        return "in-force", ""
    not_reached = [reading.reason for _, reading in pairs]
    return "cannot-tell", _joined([*failed, *not_reached])


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(reasons))


def _fits(expectation: Expectation, reported: Any) -> bool | None:
    """Whether a report is what was wanted; None where it is not known what was."""
    wanted = expectation.wanted
    if expectation.rule == "equal":
        return type(reported) is type(wanted) and reported == wanted
    if expectation.rule == "contains":
        return isinstance(reported, str) and wanted in reported.split()
    if wanted is None:
        return None
    values = reported if isinstance(reported, tuple) else (reported,)
    limits = wanted if isinstance(wanted, list) else [wanted] * len(values)
    if len(limits) != len(values):
        limits = [max(limits)] * len(values)
    return all(_is_limited(value, limit) for value, limit in zip(values, limits, strict=True))


def _is_limited(value: Any, limit: float) -> bool:
    """A limit of 0, or none at all, means all of the memory."""
    if not isinstance(value, int | float) or not value:
        return False
    return value <= (limit + _ROUNDING if limit > 1 else limit + 1e-6)


def _compared(pairs: Sequence[tuple[Expectation, Reading]]) -> Iterator[ComparedReading]:
    seen: list[ComparedReading] = []
    for expectation, reading in pairs:
        if reading.status == "reported":
            fits = _fits(expectation, reading.value)
            found = ComparedReading(reading.name, expectation.wanted, reading.value, fits)
            if found not in seen:
                seen.append(found)
                yield found
