"""What a step costs on the GPU: figures from the recording of a framework's profiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from whygpu.model.device_recording import DeviceRecording, GpuReadings, Kernel, Span
from whygpu.profiling.device_time import DeviceStates, DeviceTime
from whygpu.profiling.spans import joined, seconds_of, without

_LANE_RATES = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.97e9, 5: 3.94e9, 6: 7.56e9}
"""Bytes a second of one PCI Express lane, by generation."""
REACHED = 0.85
"""The part of the bus's rate that large copies reach: 50 to 54 of 63 GB/s on an NVIDIA H200."""
BEHIND = 0.1
"""Part of the computing. A step that was launched last has a part after the recording, too."""
HINDERED = 0.8
"""If kernels could take less than this part of their time, something is in their way."""
FEWEST_ALIKE = 10
LONGEST_NAME = 60
FILLED = 0.5
"""A kernel with fewer blocks than this part of the multiprocessors leaves most of the GPU idle."""
_FLOAT32 = ("sgemm", "f32f32_f32f32_f32", "ffma")
"""In names of kernels that multiply matrices in float32, on the ordinary cores."""
_TENSOR_CORES = ("tf32", "s1688", "16816", "hmma", "bf16", "f16")
_COMMUNICATION = ("nccl", "void nccl", "rccl")


class DeviceCosts(NamedTuple):
    """Seconds and numbers of one step."""

    family: str
    computing: float
    drained: float
    """A part of `computing`: it came after the recording, in which its step was launched."""
    copying: float
    """Copies while no kernel runs."""
    waited: float
    """The thread that trains waited for the GPU."""
    kernels: float
    kernel_seconds: float
    """The mean of one kernel."""
    pageable_bytes: float
    """Copied to the GPU from ordinary memory."""
    pageable_seconds: float
    bus_rate: float | None
    """Bytes a second; None if NVML does not say which bus it is."""
    float32_products: float
    small_kernels: float
    """Seconds of kernels that fill less than half of the GPU."""
    communication: float
    """Seconds of kernels that exchange data with other GPUs, or wait for them."""
    kernel_total: float
    """Seconds of all kernels, also of those that run at the same time."""
    unhindered: float
    """The same, if each took as long as its fastest tenth; all of it unless others use the GPU."""
    longest_kernel: str
    """The kernel that takes the most time, with all of its executions."""
    longest_seconds: float
    calls: float
    """For JAX: executions of compiled functions."""
    backend: str = ""
    """Of Keras."""
    staging: float = 0.0
    """Threads of JAX copied data into pinned memory, and the GPU was idle."""

    @property
    def busy(self) -> float:
        return self.computing + self.copying

    @property
    def is_behind(self) -> bool:
        """The program launches steps faster than the GPU computes them. It can do so until its
        queue is full, or it needs a result."""
        return self.drained >= BEHIND * self.computing

    @property
    def is_hindered(self) -> bool:
        """Other processes compute on the same GPU, and this one's kernels wait for theirs."""
        return self.unhindered < HINDERED * self.kernel_total


def device_costs(
    recording: DeviceRecording,
    time: DeviceTime,
    steps: float,
    *,
    family: str,
    backend: str,
    calls: float,
    gpu: GpuReadings | None,
) -> DeviceCosts:
    """`steps` is how many steps the recording has, `calls` how many executions a step has."""
    inside = [each for each in recording.kernels if recording.begin <= each.begin]
    copies = [
        each
        for each in recording.copies
        if recording.begin <= each.begin and each.direction == "to the GPU" and each.pageable
    ]
    total = sum(each.seconds for each in inside)
    few = FILLED * recording.multiprocessors
    return DeviceCosts(
        family,
        (seconds_of(time.states.computing) + time.states.drained) / steps,
        time.states.drained / steps,
        seconds_of(time.states.copying) / steps,
        time.waited * time.states.seconds / steps,
        len(inside) / steps,
        total / max(len(inside), 1),
        sum(each.bytes for each in copies) / steps,
        sum(each.seconds for each in copies) / steps,
        _bus_rate(gpu),
        sum(each.seconds for each in inside if _is_float32_product(each.name)) / steps,
        sum(each.seconds for each in inside if 0 < each.blocks < few) / steps,
        sum(each.seconds for each in inside if each.name.startswith(_COMMUNICATION)) / steps,
        total / steps,
        (_unhindered(inside) if gpu is not None and gpu.others else total) / steps,
        *_longest(inside, steps),
        calls,
        backend,
        seconds_of(without(joined(recording.staging), _busy(time.states))) / steps,
    )


def _busy(states: DeviceStates) -> list[Span]:
    return joined((*states.computing, *states.copying))


def _longest(kernels: Sequence[Kernel], steps: float) -> tuple[str, float]:
    totals: dict[str, float] = {}
    for each in kernels:
        totals[each.name] = totals.get(each.name, 0.0) + each.seconds
    name = max(totals, key=lambda each: totals[each], default="")
    shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
    return shown, totals.get(name, 0.0) / steps


def _unhindered(kernels: Sequence[Kernel]) -> float:
    """The same kernel takes the same time, unless the GPU works for somebody else meanwhile."""
    groups: dict[tuple[str, int], list[float]] = {}
    for each in kernels:
        groups.setdefault((each.name, each.blocks), []).append(each.seconds)
    total = 0.0
    for durations in groups.values():
        ordered = sorted(durations)
        fast = ordered[len(ordered) // 10]
        total += fast * len(ordered) if len(ordered) >= FEWEST_ALIKE else sum(ordered)
    return total


def _bus_rate(gpu: GpuReadings | None) -> float | None:
    if gpu is None or gpu.pcie_generation not in _LANE_RATES or not gpu.pcie_width:
        return None
    return REACHED * _LANE_RATES[gpu.pcie_generation] * gpu.pcie_width


def _is_float32_product(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in _FLOAT32) and not any(
        word in lower for word in _TENSOR_CORES
    )
