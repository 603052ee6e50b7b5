"""What one trial says: it fits, it does not, it leaks, or it failed of something else. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from whygpu.model.batch import Gauge, Trial, TrialOutcome
from whygpu.model.units import size_text
from whygpu.model.work import TaskEnd
from whygpu.readers.memory_errors import possible_shortage_in, shortage_in_text

_FEWEST_RISES = 5
"""Steps by which memory rose: fewer can be a beginning that takes its time to settle."""
_LEAST_LEAK = 1 << 18
"""Bytes per step. Less lasts for thousands of steps."""
_MOSTLY = 0.6
_STILL = 0.5
_LEAST_OF_RESIDENT = 0.03
"""Of what the steps take: holes make resident memory rise where nothing is kept."""
_AGREED = 0.5
_WRAP = 1 << 32
_PLAUSIBLE = 0.3
"""Of the process's own memory, counted by malloc: less, and another allocator is at work."""


class Limits(NamedTuple):
    """What there is, in bytes; None where nothing limits it, or nobody knows."""

    memory: int | None
    gpu: int | None
    """What the machine says; a framework's own word comes before it."""
    address_space: int | None = None
    ceiling: int | None = None
    """Of main memory: where a trial is ended that has taken more than its limit."""


def judge(batch: int, end: TaskEnd, limits: Limits, *, near_limit: bool = False) -> Trial:
    """`near_limit` where what smaller batches took says that this one comes near a limit: then a
    crash, and words for which want of memory is one of several reasons, are taken for it."""
    gauges = gauges_of(end, limits)
    steps = end.sent("step")
    outcome, how = _outcome(end, gauges, near_limit)
    if outcome == "does-not-fit":
        gauges = _with_what_was_asked(end, gauges)
    leak = leak_of(end)
    if leak is not None and outcome in ("fits", "does-not-fit"):
        outcome, how = "leaks", f"memory rises by {size_text(leak)} with each step"
    times = [float(step["step_seconds"]) for step in steps]
    return Trial(
        batch=batch,
        outcome=outcome,
        how=how,
        gauges=gauges,
        steps=len(steps),
        step_seconds=round(median(times[1:]), 6) if len(times) > 1 else None,
        seconds=end.seconds,
        leak_bytes=leak if outcome == "leaks" else None,
    )


def gauges_of(end: TaskEnd, limits: Limits) -> tuple[Gauge, ...]:
    """What was measured, as far as it came; the GPU's first."""
    found = []
    device = _told_of(end, "device")
    if device:
        steps = [each["device"] for each in end.sent("step") if each.get("device")]
        one_program = any(each.get("one_program") for each in end.sent("loaded"))
        peaks = [_needed(each, one_program) for each in (steps or device)]
        found.append(
            Gauge(
                "gpu",
                before=min(each["now"] for each in steps or device),
                peak=max(peaks),
                steady=max(peaks[1:] or peaks),
                limit=min(filter(None, (device[-1].get("limit"), limits.gpu)), default=None),
            )
        )
        found += _until_update(steps, found[0])
    host = _told_of(end, "host")
    ready = [*end.sent("loaded"), *end.sent("named"), *end.sent("start")]
    held: dict[str, Any] = next((each["host"] for each in ready if each.get("host")), {})
    peaks = [each["host"]["peak"] for each in end.sent("step") if each.get("host")]
    peak = max([end.peak_host_bytes, *(each["peak"] for each in host)])
    steady = max(peaks[1:] or peaks or [peak])
    found.append(Gauge("memory", held.get("now", 0), peak, steady, limits.memory))
    spaces = [each["address_space"] for each in host if each.get("address_space")]
    if limits.address_space is not None and spaces:
        start, most = held.get("address_space") or spaces[0], max(spaces)
        found.append(Gauge("address-space", start, most, most, limits.address_space))
    return tuple(found)


def _until_update(steps: Sequence[Mapping[str, Any]], whole: Gauge) -> list[Gauge]:
    """An optimiser's update takes the same with every batch, and hides what small ones take."""
    most = [each.get("gradients") for each in steps[1:]]
    known = [each for each in most if each]
    if not known or len(known) < len(most):
        return []
    return [whole._replace(name="gpu-gradients", peak=max(known), steady=max(known))]


def _with_what_was_asked(end: TaskEnd, gauges: tuple[Gauge, ...]) -> tuple[Gauge, ...]:
    """XLA asks for all that a program needs beside its arguments in one piece: what it was refused
    and what was held then are what the batch takes."""
    shortage = shortage_in_text(f"{end.traceback}\n{end.how}")
    refused = [each["device"] for each in end.sent("broken") if each.get("device")]
    if shortage is None or shortage.of != "xla" or not shortage.asked or not refused:
        return gauges
    need = refused[-1]["now"] + shortage.asked
    return tuple(
        # For holes between its blocks, less than the limit can be refused.
        gauge._replace(peak=(most := max(need, gauge.limit + 1)), steady=most)
        if gauge.name == "gpu" and gauge.limit
        else gauge
        for gauge in gauges
    )


def _needed(device: Mapping[str, Any], one_program: bool) -> int:
    """What a compiler says of its program comes before the counters, which include what it tried
    out; but it knows nothing of what other programs of the same step keep for it."""
    peak, need = int(device["peak"]), int(device.get("need") or 0)
    return need if need and (one_program or need >= _AGREED * peak) else peak


def _told_of(end: TaskEnd, kind: str) -> list[dict[str, Any]]:
    kinds = ("start", "named", "loaded", "step")
    told = [each for name in kinds for each in end.sent(name)]
    return [each[kind] for each in told if each.get(kind)]


def _outcome(end: TaskEnd, gauges: Iterable[Gauge], near_limit: bool) -> tuple[TrialOutcome, str]:
    over = next(
        (each for each in gauges if each.decides and each.limit and each.peak > each.limit), None
    )
    if end.ended == "finished" and over is not None:
        return "does-not-fit", f"{size_text(over.peak)}, more than the limit of main memory"
    if end.ended == "over-limit":
        return "does-not-fit", "more than the limit of main memory"
    if end.ended == "finished":
        return "fits", ""
    if end.ended == "timed-out":
        return "too-slow", f"not done within {end.how}"
    if end.ended == "exception":
        return _told(f"{end.traceback}\n{end.how}", end.how, near_limit)
    if end.ended == "signal" and end.how == "SIGKILL":
        return "does-not-fit", "killed (SIGKILL), as the kernel does when memory runs out"
    outcome, how = _told(end.error_text, f"{end.how}, without an exception", near_limit)
    if outcome == "failed" and end.ended == "signal" and near_limit:
        # Libraries that do not look whether they were given what they asked for.
        return "does-not-fit", f"{end.how}, near the limit"
    return outcome, how


def _told(text: str, otherwise: str, near_limit: bool) -> tuple[TrialOutcome, str]:
    """Only what the program itself says of memory is taken for want of it."""
    shortage = shortage_in_text(text)
    if shortage is not None:
        return "does-not-fit", shortage.text
    perhaps = possible_shortage_in(text) if near_limit else ""
    return ("does-not-fit", f"{perhaps}, near the limit") if perhaps else ("failed", otherwise)


def leak_of(end: TaskEnd) -> int | None:
    """Bytes by which memory that stays in use rises with each step; None where it does not."""
    steps = end.sent("step")
    device = [each["device"]["now"] for each in steps if each.get("device")]
    host = [each["host"] for each in steps if each.get("host")]
    rise = steady_rise(device, _LEAST_LEAK)
    if rise is not None or not host:
        return rise
    if all(_counted(each) for each in host):
        return steady_rise(_unwrapped([each["in_use"] for each in host]), _LEAST_LEAK)
    least = _LEAST_OF_RESIDENT * (max(each["peak"] for each in host) - host[0]["now"])
    return steady_rise([each["now"] for each in host], max(int(least), _LEAST_LEAK))


def _counted(host: Mapping[str, Any]) -> bool:
    in_use, anonymous = host.get("in_use"), host.get("anonymous")
    if in_use is None or anonymous is None:
        return False
    return bool(anonymous > _WRAP or in_use >= _PLAUSIBLE * anonymous)


def _unwrapped(counts: Sequence[int]) -> list[int]:
    """Counters of 32 bits as what they would be without an end."""
    found = list(counts[:1])
    for before, after in pairwise(counts):
        change = after - before
        if max(before, after) < _WRAP and abs(change) > _WRAP // 2:
            change -= _WRAP if change > 0 else -_WRAP
        found.append(found[-1] + change)
    return found


def steady_rise(held: Sequence[int], least: int) -> int | None:
    """What is held between steps goes up by about the same amount each time, to the end.

    What a framework frees behind one's back makes it jump to and fro on the way.
    """
    # Between the first step and the second, much is still being set up.
    rises = [after - before for before, after in pairwise(held[1:])]
    if len(rises) < _FEWEST_RISES:
        return None
    usual, late = median(rises), median(rises[len(rises) // 2 :])
    up = sum(rise > 0 for rise in rises)
    if usual < least or up < _MOSTLY * len(rises) or late < _STILL * usual:
        return None
    return int(usual)
