"""Judges one trial: it fits, does not fit, leaks, or failed for another reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from whygpu.model.batch import Gauge, Trial, TrialOutcome
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import (
    DeviceReading,
    HostReading,
    LoadedMessage,
    MemoryMessage,
    StepMessage,
)
from whygpu.model.units import size_text
from whygpu.readers.memory_errors import (
    is_about_the_start,
    no_algorithm_for_lack_of_memory,
    possible_shortage_in,
    shortage_in_text,
)

_FEWEST_RISES = 5
"""Steps after which memory must have risen: with fewer, it may still be settling."""
_LEAST_LEAK = 1 << 18
"""Bytes per step. A smaller leak lasts for thousands of steps."""
_RISING_STEPS = 0.6
"""Part of the steps of a leak after which memory is higher than before."""
_LATE_RISE = 0.5
"""The usual rise of the second half of a leak's steps, as a part of that of all steps."""
_LEAST_RESIDENT_LEAK = 0.03
"""Part of the memory that the steps take: fragmentation alone can make resident memory rise by
less."""
_LEAST_COMPILED_SHARE = 0.5
"""Below this part of the measured peak, the compiler's figure is not that of the whole step."""
_COUNTER_RANGE = 1 << 32
"""The counters of glibc before 2.33 have 32 bits."""
_LEAST_MALLOC_SHARE = 0.3
"""Below this part of the process's own memory, malloc's counters miss another allocator's."""


class Limits(NamedTuple):
    """What there is, in bytes; None if nothing limits it, or it is not known."""

    memory: int | None
    gpu: int | None
    """As the driver says; the framework's own limit is used if it is smaller."""
    address_space: int | None = None
    ceiling: int | None = None
    """Main memory at which a trial is stopped. It may be above `memory`: by how much a batch is too
    large shows where the limit is reached."""


def judge(batch: int, end: TaskEnd, limits: Limits, *, near_limit: bool = False) -> Trial:
    """`near_limit`: by what smaller batches took, this one comes near a limit. Then a crash is
    judged as not fitting, and so is a message that a lack of memory is one possible cause of."""
    gauges = gauges_of(end, limits)
    steps = end.sent(StepMessage)
    outcome, how = _outcome(end, gauges, near_limit)
    if outcome == "does-not-fit":
        gauges = _with_refused_request(end, gauges)
    leak = leak_of(end)
    if leak is not None and outcome in ("fits", "does-not-fit"):
        outcome, how = "leaks", f"memory rises by {size_text(leak)} with each step"
    times = [step.step_seconds for step in steps]
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
    """What was measured before the end, the GPU's memory first."""
    return (*_gpu_gauges(end, limits), *_host_gauges(end, limits))


def _gpu_gauges(end: TaskEnd, limits: Limits) -> tuple[Gauge, ...]:
    steps = [step.device for step in end.sent(StepMessage) if step.device is not None]
    earlier = [message.device for message in _before_steps(end) if message.device is not None]
    readings = steps or earlier
    if not readings:
        return ()
    one_program = any(message.one_program for message in end.sent(LoadedMessage))
    peaks = [_needed(reading, one_program) for reading in readings]
    whole = Gauge(
        "gpu",
        before=min(reading.now for reading in readings),
        peak=max(peaks),
        steady=max(peaks[1:] or peaks),
        limit=min(filter(None, (readings[-1].limit, limits.gpu)), default=None),
    )
    return (whole, *_gradient_gauge(steps, whole))


def _gradient_gauge(steps: Sequence[DeviceReading], whole: Gauge) -> tuple[Gauge, ...]:
    """The peak before the optimizer's update. The update takes the same for every batch, so for
    small batches it hides what the batch takes."""
    peaks = [step.gradients for step in steps[1:]]
    known = [peak for peak in peaks if peak]
    if not known or len(known) < len(peaks):
        return ()
    return (whole._replace(name="gpu-gradients", peak=max(known), steady=max(known)),)


def _host_gauges(end: TaskEnd, limits: Limits) -> tuple[Gauge, ...]:
    steps = [step.host for step in end.sent(StepMessage) if step.host is not None]
    earlier = [message.host for message in _before_steps(end) if message.host is not None]
    before = earlier[-1] if earlier else HostReading(0, 0)
    readings = [*earlier, *steps]
    peak = max([end.peak_host_bytes, *(reading.peak for reading in readings)])
    peaks = [step.peak for step in steps]
    steady = max(peaks[1:] or peaks or [peak])
    memory = Gauge("memory", before=before.now, peak=peak, steady=steady, limit=limits.memory)
    spaces = [reading.address_space for reading in readings if reading.address_space]
    if limits.address_space is None or not spaces:
        return (memory,)
    most = max(spaces)
    start = before.address_space or spaces[0]
    limit = limits.address_space
    return memory, Gauge("address-space", before=start, peak=most, steady=most, limit=limit)


def _before_steps(end: TaskEnd) -> list[MemoryMessage | LoadedMessage]:
    """The readings before the first step, in order."""
    early = [message for message in end.sent(MemoryMessage) if message.kind in ("start", "named")]
    return [*early, *end.sent(LoadedMessage)]


def _with_refused_request(end: TaskEnd, gauges: tuple[Gauge, ...]) -> tuple[Gauge, ...]:
    """XLA requests all memory that a program needs beside its arguments at once, so the batch takes
    what was refused and what was held at that time."""
    shortage = shortage_in_text(_exception_text(end))
    readings = [message.device for message in end.sent(MemoryMessage) if message.kind == "broken"]
    held = readings[-1] if readings else None
    if shortage is None or shortage.of != "xla" or not shortage.asked or held is None:
        return gauges
    need = held.now + shortage.asked
    return tuple(
        # Fragmentation can make XLA refuse less than the limit.
        gauge._replace(peak=(most := max(need, gauge.limit + 1)), steady=most)
        if gauge.name == "gpu" and gauge.limit
        else gauge
        for gauge in gauges
    )


def _needed(device: DeviceReading, one_program: bool) -> int:
    """The compiler's figure for its program is better than the counters, which include what it
    tried while compiling. But it does not include what other programs of the same step keep."""
    need = device.need or 0
    if need and (one_program or need >= _LEAST_COMPILED_SHARE * device.peak):
        return need
    return device.peak


def _outcome(end: TaskEnd, gauges: Iterable[Gauge], near_limit: bool) -> tuple[TrialOutcome, str]:
    over = next(
        (each for each in gauges if each.decides and each.limit and each.peak > each.limit), None
    )
    if end.ended == "finished" and over is not None:
        return "does-not-fit", f"{size_text(over.peak)}, more than the limit of main memory"
    if end.ended == "over-limit":
        return "does-not-fit", "more than the limit of main memory"
    if end.ended == "hopeless-request":
        return "does-not-fit", end.how
    if end.ended == "finished":
        return "fits", ""
    if end.ended == "timed-out":
        return "too-slow", f"not finished within {end.how}"
    if end.ended == "exception":
        return _judged_by_exception(end, near_limit)
    if end.ended == "signal" and end.how == "SIGKILL":
        return "does-not-fit", "killed (SIGKILL), as the kernel does when memory runs out"
    outcome, how = _judged_by_text(end.error_text, f"{end.how}, without an exception", near_limit)
    if outcome == "failed" and end.ended == "signal" and near_limit:
        # Some libraries do not check whether they got the memory that they requested.
        return "does-not-fit", f"{end.how}, near the limit"
    return outcome, how


def _judged_by_exception(end: TaskEnd, near_limit: bool) -> tuple[TrialOutcome, str]:
    if is_about_the_start(_exception_text(end)):
        return "failed", f"{end.how}: other processes hold the memory of the GPU"
    outcome, how = _judged_by_text(_exception_text(end), end.how, near_limit)
    if outcome == "failed":
        line = no_algorithm_for_lack_of_memory(_exception_text(end), end.error_text)
        if line:
            return "does-not-fit", line
    return outcome, how


def _exception_text(end: TaskEnd) -> str:
    return f"{end.traceback}\n{end.how}"


def _judged_by_text(text: str, otherwise: str, near_limit: bool) -> tuple[TrialOutcome, str]:
    """Only what the program itself says about memory counts as a lack of it."""
    shortage = shortage_in_text(text)
    if shortage is not None:
        return "does-not-fit", shortage.text
    possible = possible_shortage_in(text) if near_limit else ""
    return ("does-not-fit", f"{possible}, near the limit") if possible else ("failed", otherwise)


def leak_of(end: TaskEnd) -> int | None:
    """Bytes by which the memory that stays in use rises with each step; None if it does not."""
    steps = end.sent(StepMessage)
    on_device = [step.device.now for step in steps if step.device is not None]
    rise = steady_rise(on_device, _LEAST_LEAK)
    host = [step.host for step in steps if step.host is not None]
    if rise is not None or not host:
        return rise
    in_use = [_malloc_count(reading) for reading in host]
    counted = [count for count in in_use if count is not None]
    if len(counted) == len(in_use):
        return steady_rise(_unwrapped(counted), _LEAST_LEAK)
    least = _LEAST_RESIDENT_LEAK * (max(reading.peak for reading in host) - host[0].now)
    return steady_rise([reading.now for reading in host], max(int(least), _LEAST_LEAK))


def _malloc_count(reading: HostReading) -> int | None:
    """What malloc says is in use; None if it does not say, or another allocator is in use."""
    in_use, anonymous = reading.in_use, reading.anonymous
    if in_use is None or anonymous is None:
        return None
    plausible = anonymous > _COUNTER_RANGE or in_use >= _LEAST_MALLOC_SHARE * anonymous
    return in_use if plausible else None


def _unwrapped(counts: Sequence[int]) -> list[int]:
    """The values of a counter that starts again at 0 after 32 bits, as if it did not."""
    found = list(counts[:1])
    for before, after in pairwise(counts):
        change = after - before
        if max(before, after) < _COUNTER_RANGE and abs(change) > _COUNTER_RANGE // 2:
            change -= _COUNTER_RANGE if change > 0 else -_COUNTER_RANGE
        found.append(found[-1] + change)
    return found


def steady_rise(held: Sequence[int], least: int) -> int | None:
    """The usual rise of the memory held after each step, if it rises steadily to the end.

    Single steps may go down: frameworks free memory at times of their own.
    """
    # Between the first step and the second, much is still being set up.
    rises = [after - before for before, after in pairwise(held[1:])]
    if len(rises) < _FEWEST_RISES:
        return None
    usual, late = median(rises), median(rises[len(rises) // 2 :])
    rising = sum(rise > 0 for rise in rises)
    if usual < least or rising < _RISING_STEPS * len(rises) or late < _LATE_RISE * usual:
        return None
    return int(usual)
