"""What else is known about the GPU: in the rows of an answer, and below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.device_recording import GpuReadings
from whygpu.model.profile import ProcessProfile, TimeShare, percent_text
from whygpu.model.units import size_text
from whygpu.profiling.device_costs import DeviceCosts
from whygpu.profiling.step_costs import StepCosts
from whygpu.profiling.steps import SLOWED_DOWN, StepsFound, slowdown, steps_between

MOSTLY = 0.5
NOTICEABLE = 0.03
_SLOWED = {
    0x0000000000000004: "its power limit",
    0x0000000000000008: "a slowdown by its hardware",
    0x0000000000000020: "its temperature",
    0x0000000000000040: "its temperature",
    0x0000000000000080: "the power supply",
}
"""Bits of NVML's reasons for a clock that is lower than it could be, and what they mean."""


def with_device_details(shares: Sequence[TimeShare], costs: StepCosts) -> tuple[TimeShare, ...]:
    """The rows, with what the recording says about copies and launches."""
    if costs.device is None:
        return tuple(shares)
    details = {
        "computing": _computing(costs.device),
        "launches": _launches(costs.device),
        "copies": _copies(costs, costs.device),
    }
    return tuple(
        _without_line(share._replace(detail=share.detail or details.get(share.category, "")))
        for share in shares
    )


def _without_line(share: TimeShare) -> TimeShare:
    """While the GPU computes, the program's thread is somewhere else."""
    return share._replace(where=None, inside=None) if share.category == "computing" else share


def _computing(device: DeviceCosts) -> str:
    if not device.longest_kernel:
        return ""
    share = percent_text(min(device.longest_seconds / max(device.kernel_total, 1e-12), 1.0))
    return f"{share} of it in the kernel {device.longest_kernel}"


def _launches(device: DeviceCosts) -> str:
    return (
        f"{device.kernels:,.0f} kernels a step, {device.kernel_seconds * 1e6:.1f} microseconds each"
    )


def _copies(costs: StepCosts, device: DeviceCosts) -> str:
    if device.staging >= MOSTLY * costs.seconds("copies"):
        return "threads of JAX first copy the data into pinned memory"
    if not device.pageable_bytes or not device.pageable_seconds:
        return ""
    rate = device.pageable_bytes / device.pageable_seconds
    text = f"from ordinary (pageable) memory, {rate / 1e9:.1f} GB/s"
    return f"{text} of {device.bus_rate / 1e9:.0f}" if device.bus_rate else text


def device_notes(
    profile: ProcessProfile, steps: StepsFound, device: DeviceCosts | None
) -> Iterator[str]:
    """How the GPU's work was recorded, or why not, and what NVML says."""
    recording = profile.device
    if device is None or recording is None:
        yield (
            f"the work of the GPU itself was not timed ({_why_not(profile)}): computing is the "
            "time in the framework's calls, in which it launches work or waits for it"
        )
    else:
        count = steps_between(steps.marks, recording.begin, recording.end)
        yield (
            f"the GPU's work was recorded by {profile.recording.profiler} for "
            f"{recording.seconds:.1f} s ({count:,} steps{_slower(profile, steps)}), and the rest "
            f"of the run judged by it; {_pauses(profile)} of waiting for it are not counted"
        )
        if device.is_behind:
            yield (
                "the program launches steps faster than the GPU computes them: a step is counted "
                "as long as the GPU needs for it"
            )
        if recording.devices > 1:
            yield f"of {recording.devices} GPUs, number {recording.device} was judged"
        if device.communication >= NOTICEABLE * device.kernel_total:
            yield (
                f"{percent_text(device.communication / device.kernel_total)} of the computing is "
                "communication with other GPUs, in which a GPU also waits for the slowest of them"
            )
        small = device.small_kernels / max(device.kernel_total, 1e-12)
        if small >= MOSTLY:
            yield (
                f"{percent_text(small)} of the computing is in kernels that fill less than half of "
                "the GPU: a larger batch would cost little"
            )
    number = recording.device if recording is not None else 0
    for gpu in profile.gpus:
        if gpu.number == number:
            yield from _readings(gpu, steps)
            yield from _others(gpu, device)


def _slower(profile: ProcessProfile, steps: StepsFound) -> str:
    factor = slowdown(steps, profile.recording)
    if factor is None or factor < SLOWED_DOWN:
        return ""
    return f", {(factor - 1) * 100:.0f} % longer than the others"


def _pauses(profile: ProcessProfile) -> str:
    seconds = sum(pause[1] - pause[0] for pause in profile.recording.pauses if len(pause) == 2)
    return f"{seconds:.1f} s"


def _why_not(profile: ProcessProfile) -> str:
    if profile.recording.problem:
        return profile.recording.problem
    if profile.device is not None and not profile.device.kernels:
        return "the framework's profiler recorded no kernels"
    if profile.device is not None:
        return "the program could hardly be sampled while the framework's profiler ran"
    return "the program ended before the framework's profiler ran"


def _readings(gpu: GpuReadings, steps: StepsFound) -> Iterator[str]:
    readings = [each for each in gpu.readings if steps.begin <= each.time <= steps.end]
    if not readings:
        return
    reasons: dict[str, int] = {}
    for reading in readings:
        for text in {text for bit, text in _SLOWED.items() if (reading.reasons or 0) & bit}:
            reasons[text] = reasons.get(text, 0) + 1
    for text, count in reasons.items():
        if count >= MOSTLY * len(readings):
            clocks = [each.clock_mhz for each in readings if each.clock_mhz]
            slowest = f", down to {min(clocks)} MHz" if clocks else ""
            of = f" of {gpu.most_clock_mhz}" if clocks and gpu.most_clock_mhz else ""
            yield f"the clock of the GPU was limited by {text}{slowest}{of}"


def _others(gpu: GpuReadings, device: DeviceCosts | None) -> Iterator[str]:
    others = gpu.others
    if not others:
        return
    listed = ", ".join(f"process {each.pid} ({size_text(each.memory_bytes)})" for each in others)
    if device is not None and device.is_hindered:
        factor = device.kernel_total / max(device.unhindered, 1e-9)
        effect = f"the same kernels took {factor:.1f} times as long as when they ran alone"
    else:
        effect = "the kernels of this program did not take longer because of that"
    whose = "another process has" if len(others) == 1 else f"{len(others)} other processes have"
    yield f"{whose} this GPU open: {listed}; {effect}"
