"""Decides what makes the GPUs work, and which of them are left alone. Pure."""

from __future__ import annotations

from typing import NamedTuple, get_args

from whygpu.model.derived import and_list, display_name, gpu_proven_by
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import StressedGpu
from whygpu.model.task_wire import LoadFramework, StressGpu
from whygpu.model.units import GIB, MIB, size_text
from whygpu.tables.architectures import shares_main_memory
from whygpu.tables.desktop_programs import DESKTOP_PROGRAMS

FRAMEWORKS: tuple[LoadFramework, ...] = get_args(LoadFramework)
"""The first that can compute on the GPU is used."""
MOST_UNEXPLAINED = GIB
"""Memory in use that belongs to no process which the driver lists: more is somebody's work."""
MOST_MEMORY = 3 * GIB
LEAST_MEMORY = 512 * MIB
_MOST_NAMED = 3
FORCE = "to test it anyway: --stress-busy"


class LoadPlan(NamedTuple):
    framework: LoadFramework
    gpus: tuple[tuple[int, StressGpu], ...]
    """To be put under load, by their numbers."""
    left_alone: tuple[StressedGpu, ...]


def plan_load(machine: Snapshot, *, even_if_busy: bool) -> Observed[LoadPlan]:
    """Absent if there is no GPU to test; unknown if there is, and nothing can make it work."""
    gpus = machine.driver.gpus
    if not isinstance(gpus, Known):
        return gpus
    seen = [gpu for gpu in gpus.value if _is_visible(machine, gpu)]
    if not seen:
        return Absent("GPUs that programs see here")
    framework = _framework(machine)
    if not isinstance(framework, Known):
        return framework
    tested: list[tuple[int, StressGpu]] = []
    left_alone: list[StressedGpu] = []
    for gpu in seen:
        room = _room(gpu)
        reason = "" if even_if_busy else _in_use(gpu)
        if isinstance(room, Unknown):
            reason = room.reason
        if reason or not isinstance(room, Known):
            left_alone.append(StressedGpu(gpu.number, Unknown(reason)))
        else:
            tested.append((gpu.number, StressGpu(gpu.pci_address, room.value)))
    return Known(LoadPlan(framework.value, tuple(tested), tuple(left_alone)), gpus.source)


def _is_visible(machine: Snapshot, gpu: Gpu) -> bool:
    selection = machine.environment.visible_gpus
    if isinstance(selection, Known) and isinstance(selection.value.visible, Known):
        return gpu.number in selection.value.visible.value
    return True


def _framework(machine: Snapshot) -> Observed[LoadFramework]:
    """The first that computed on the GPU; if none was run, the first with a build for CUDA."""
    proven = {probe.name for probe in machine.probes if gpu_proven_by(probe)}
    tried = {probe.name for probe in machine.probes}
    installed = machine.target.frameworks
    if not isinstance(installed, Known):
        return installed
    for name in FRAMEWORKS:
        if name in proven:
            return Known(name, f"{name} probe")
    for framework in installed.value:
        kind = framework.build.kind
        if framework.name not in FRAMEWORKS or framework.name in tried:
            continue
        if isinstance(kind, Known) and kind.value == "cuda":
            return Known(framework.name, installed.source)
    names = and_list([display_name(name) for name in FRAMEWORKS])
    return Unknown(f"nothing in this environment computes on the GPU ({names} could)")


def _in_use(gpu: Gpu) -> str:
    """Which processes use the GPU, as the reason to leave it alone; empty if none does."""
    processes = gpu.processes
    if not isinstance(processes, Known):
        # The test itself looks whether the GPU is at work.
        return _unexplained(gpu, ())
    others = [process for process in processes.value if not is_harmless(process)]
    if not others:
        return _unexplained(gpu, processes.value)
    names = [_name(process) for process in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        names.append(f"{len(others) - _MOST_NAMED} more")
    return f"it is in use by {and_list(names)}; {FORCE}"


def _unexplained(gpu: Gpu, listed: tuple[GpuProcess, ...]) -> str:
    """In a container, NVML does not list the processes of others, but counts their memory."""
    if shares_main_memory(gpu):
        # Every program uses that.
        return ""
    used = gpu.memory_used_bytes
    theirs = [process.memory_bytes for process in listed]
    if not isinstance(used, Known) or any(not isinstance(each, Known) for each in theirs):
        return ""
    rest = used.value - sum(each.value for each in theirs if isinstance(each, Known))
    if rest <= MOST_UNEXPLAINED:
        return ""
    return f"programs that are not visible from here use {size_text(rest)} of its memory; {FORCE}"


def is_harmless(process: GpuProcess) -> bool:
    """A desktop, or the program that asks, which waits meanwhile."""
    if isinstance(process.is_asking, Known) and process.is_asking.value:
        return True
    return isinstance(process.name, Known) and process.name.value in DESKTOP_PROGRAMS


def _name(process: GpuProcess) -> str:
    name = process.name
    return f"{name.value} ({process.pid})" if isinstance(name, Known) else f"process {process.pid}"


def _room(gpu: Gpu) -> Observed[int]:
    """How much of its memory the test may take: half of what is free, and never much."""
    if not gpu.pci_address:
        return Unknown("the driver does not say where on the bus it is")
    total, used, reserved = (
        gpu.memory_total_bytes,
        gpu.memory_used_bytes,
        gpu.memory_reserved_bytes,
    )
    if not isinstance(total, Known) or not isinstance(used, Known):
        return Unknown("the driver does not say how much of its memory is free")
    kept = reserved.value if isinstance(reserved, Known) else 0
    room = min(MOST_MEMORY, (total.value - used.value - kept) // 2)
    if room < LEAST_MEMORY:
        free = size_text(max(0, 2 * room))
        return Unknown(f"only {free} of its memory are free; {size_text(2 * LEAST_MEMORY)} needed")
    return Known(room, used.source)
