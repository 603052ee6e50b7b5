"""How much GPU memory a new process of each framework would take now."""

from __future__ import annotations

from collections.abc import Mapping

from whygpu.memory.demand import Demand, demand
from whygpu.memory.room import room_of
from whygpu.model.derived import display_name
from whygpu.model.driver import Gpu
from whygpu.model.holders import NewProcess
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.memory_defaults import MemoryDefault


def new_process(
    machine: Snapshot, gpu: Gpu, variables: Mapping[str, str], row: MemoryDefault
) -> NewProcess:
    """`variables` are those of the environment in which it would be started."""
    framework = machine.framework(row.framework)
    version = framework.value.version if isinstance(framework, Known) else ""
    wants = _kept_off(machine, gpu, framework) or _demand(gpu, row, version, variables)
    return NewProcess(
        framework=row.framework,
        version=version,
        start=wants.start,
        asks_bytes=wants.asks,
        gets_bytes=wants.gets,
        why=wants.why,
        changed_by=row.changed_by if wants.start in ("reserves", "grows") else (),
    )


def _demand(gpu: Gpu, row: MemoryDefault, version: str, variables: Mapping[str, str]) -> Demand:
    if isinstance(gpu.mig, Known) and gpu.mig.value:
        return Demand("unknown", "MIG splits the GPU, and a process has one of the parts to itself")
    room = room_of(gpu)
    if not isinstance(room, Known):
        why = room.reason if isinstance(room, Unknown) else f"there is no {room.source}"
        return Demand("unknown", why)
    return demand(row.framework, version, variables, room.value)


def _kept_off(machine: Snapshot, gpu: Gpu, framework: Observed[Framework]) -> Demand | None:
    """Why such a process cannot use this GPU; None if it may."""
    shown = machine.environment.visible_gpus
    if isinstance(shown, Known):
        visible = shown.value.visible
        if isinstance(visible, Known) and gpu.number not in visible.value:
            hidden = f'CUDA_VISIBLE_DEVICES="{shown.value.text}" hides this GPU'
            return Demand("nothing", hidden)
    if isinstance(framework, Known):
        kind = framework.value.build.kind
        if isinstance(kind, Known) and kind.value != "cuda":
            name = display_name(framework.value.name)
            return Demand("nothing", f"the installed {name} is a build without CUDA ({kind.value})")
    return _refused(gpu)


def _refused(gpu: Gpu) -> Demand | None:
    mode = gpu.compute_mode
    if not isinstance(mode, Known):
        return None
    if mode.value == "prohibited":
        return Demand("fails", "the GPU's compute mode is prohibited: CUDA refuses every process")
    busy = isinstance(gpu.processes, Known) and gpu.processes.value
    if mode.value == "exclusive" and busy:
        return Demand(
            "fails", "the GPU's compute mode is exclusive, and another process uses the GPU"
        )
    return None
