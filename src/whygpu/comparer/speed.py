"""How fast the lanes are, and why a GPU lane is slower than the CPU lane, if it is."""

from __future__ import annotations

import statistics

from whygpu.model.comparison import LaneRun, SpeedSummary, Timing
from whygpu.model.figures import seconds, times

WIDEST = 0.5
"""How far the middle half of the calls may reach from the median, as a part of it. If it reaches
further, other programs decide how long a call takes."""
MOST = 0.5
"""A part that takes half of the time is the reason."""
SMALL_SECONDS = 5e-3
"""If kernels were not measured: work that the CPU does in this time is small."""


def summary(run: LaneRun, cpu: LaneRun | None) -> SpeedSummary | None:
    timing = run.timing
    if timing is None or not timing.seconds:
        return None
    median = statistics.median(timing.seconds)
    low, high = _middle_half(timing.seconds)
    baseline = cpu.timing if cpu is not None and cpu is not run else None
    if baseline is not None and (why_no_measurement(timing) or why_no_measurement(baseline)):
        baseline = None
    ratio = statistics.median(baseline.seconds) / median if baseline and median > 0 else None
    return SpeedSummary(
        first_call_seconds=timing.first_call_seconds,
        median_seconds=median,
        low_seconds=low,
        high_seconds=high,
        calls=len(timing.seconds),
        items_per_second=timing.items / median if timing.items and median else None,
        against_cpu=ratio,
        no_measurement=why_no_measurement(timing),
        slower_because=_slower(run, baseline) if baseline is not None else "",
        transfer_seconds=timing.transfer_seconds,
        compute_seconds=timing.compute_seconds,
        peak_device_bytes=timing.peak_device_bytes,
        peak_host_bytes=timing.peak_host_bytes,
    )


def why_no_measurement(timing: Timing) -> str:
    """Why the time of a call says little about speed; empty if it is a measurement."""
    if len(timing.seconds) == 1:
        return "it was called once, so that nothing shows how much a call varies"
    median = statistics.median(timing.seconds)
    low, high = _middle_half(timing.seconds)
    if max(high - median, median - low) > WIDEST * median:
        return "its calls differ too much, as on a busy machine"
    return ""


def _middle_half(calls: tuple[float, ...]) -> tuple[float, float]:
    if len(calls) < 2:
        return calls[0], calls[0]
    low, _, high = statistics.quantiles(calls, n=4, method="inclusive")
    return low, high


def _slower(run: LaneRun, cpu: Timing) -> str:
    """Empty unless it is a GPU lane and certainly slower: the middle halves do not overlap."""
    timing = run.timing
    if run.lane.device != "gpu" or timing is None or not cpu.seconds:
        return ""
    if _middle_half(timing.seconds)[0] <= _middle_half(cpu.seconds)[1]:
        return ""
    return why_slower(timing, statistics.median(cpu.seconds))


def why_slower(gpu: Timing, cpu_seconds: float) -> str:
    """Why a GPU needs more time than the CPU, from what was measured: goes on from "because"."""
    median = statistics.median(gpu.seconds)
    made = gpu.input_seconds or 0.0
    # Making the input takes the same time on both, so the difference is in the rest.
    reason = _reason(gpu, median - made, max(0.0, cpu_seconds - made))
    if made >= MOST * median:
        reason = (
            f"the work is input-bound: making the input on the host takes {seconds(made)} of "
            f"{seconds(median)}, and the GPU waits for it; the rest is slower because {reason}"
        )
    return reason + _parts(gpu)


def _reason(gpu: Timing, rest: float, cpu_rest: float) -> str:
    """Without the time for making the input."""
    compute = gpu.compute_seconds
    if gpu.transfer_seconds is not None and gpu.transfer_seconds >= MOST * rest > 0:
        return (
            "the work is transfer-bound: moving input and output takes "
            f"{seconds(gpu.transfer_seconds)} of {seconds(rest)}"
        )
    if gpu.busy_seconds is not None and compute is not None and gpu.busy_seconds < MOST * compute:
        return (
            f"the work is too small: its {gpu.launches:,} kernels take {seconds(gpu.busy_seconds)} "
            f"of {seconds(compute)}, and launching them takes the rest; a larger batch would use "
            "the GPU better"
        )
    if gpu.busy_seconds is None and cpu_rest < SMALL_SECONDS:
        return (
            f"the work is too small: the CPU needs {seconds(cpu_rest)}, about as long as it takes "
            "to start the work on a GPU; a larger batch would use the GPU better"
        )
    if compute is not None and compute > cpu_rest > 0:
        return (
            f"the computation itself takes {seconds(compute)} on the GPU, "
            f"{times(compute / cpu_rest)} as long as the CPU needs for everything"
        )
    return "of something that whygpu did not measure"


def _parts(gpu: Timing) -> str:
    known = [
        f"{what} {seconds(value)}"
        for what, value in (
            ("input", gpu.input_seconds),
            ("transfer", gpu.transfer_seconds),
            ("computing", gpu.compute_seconds),
        )
        if value is not None
    ]
    return f" ({', '.join(known)})" if known else ""
