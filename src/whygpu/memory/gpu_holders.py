"""Judges a snapshot: who holds each GPU's memory, and what a new process would take of the rest.

How much of what a process holds is in use, only that process knows, and tells under `whygpu run`:
NVML sees what its allocator has taken. What can be told from outside is whether the amount is that
of a reservation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from whygpu.memory.demand import Demand, demand
from whygpu.memory.new_process import new_process
from whygpu.memory.room import free_of, room_of
from whygpu.model.derived import and_list, display_name, nvidia_gpu
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.holders import Default, GpuMemory, HeldAs, Holder, HoldersReport
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.units import MIB
from whygpu.tables.architectures import shares_main_memory
from whygpu.tables.memory_defaults import (
    ALWAYS_TOLD,
    DEFAULTS,
    LARGEST_OVERHEAD,
    VARIABLES,
    MemoryDefault,
)

_WORTH_TELLING = 16 * MIB
"""A smaller remainder is not reported: the driver's figures are not that exact."""
_DRIVERS_OWN = 256 * MIB
_NEARLY = 0.98
"""Part of a reservation from which on it is recognised: the GPU's total is known roughly."""
_HOLDERS_UNSEEN = "another container or another pid namespace"


def judge(machine: Snapshot, only: Collection[int] | None = None) -> HoldersReport:
    """What the snapshot shows of the GPUs, or of those with the numbers given."""
    variables = _variables(machine)
    shown = [row for row in DEFAULTS if _is_shown(machine, row)]
    return HoldersReport(
        gpus=_gpus(machine, only, variables, shown),
        settings=tuple(sorted(variables.items())),
        defaults=tuple(Default(d.framework, d.says, d.changed_by, d.source) for d in shown),
    )


def _variables(machine: Snapshot) -> dict[str, str]:
    names = VARIABLES | {"CUDA_VISIBLE_DEVICES"}
    return {v.name: v.value for v in machine.environment.variables if v.name in names}


def _is_shown(machine: Snapshot, row: MemoryDefault) -> bool:
    installed = isinstance(machine.framework(row.framework), Known)
    return installed or row.framework in ALWAYS_TOLD


def _gpus(
    machine: Snapshot,
    only: Collection[int] | None,
    variables: Mapping[str, str],
    shown: Sequence[MemoryDefault],
) -> Observed[tuple[GpuMemory, ...]]:
    gpus = machine.driver.gpus
    if isinstance(gpus, Unknown):
        return gpus
    if isinstance(gpus, Known) and gpus.value:
        chosen = (gpu for gpu in gpus.value if only is None or gpu.number in only)
        return Known(tuple(_gpu(machine, gpu, variables, shown) for gpu in chosen), gpus.source)
    there = nvidia_gpu(machine)
    if not isinstance(there, Known):
        return there
    detail = f" ({machine.driver.detail})" if machine.driver.detail else ""
    return Unknown(f"there is {there.value}, but no driver shows it as a GPU{detail}")


def _gpu(
    machine: Snapshot, gpu: Gpu, variables: Mapping[str, str], shown: Sequence[MemoryDefault]
) -> GpuMemory:
    processes = gpu.processes
    return GpuMemory(
        number=gpu.number,
        name=gpu.name,
        total_bytes=gpu.memory_total_bytes,
        used_bytes=gpu.memory_used_bytes,
        reserved_bytes=gpu.memory_reserved_bytes,
        free_bytes=free_of(gpu),
        holders=(*_processes(gpu), *_unaccounted(machine, gpu)),
        processes_unknown="" if isinstance(processes, Known) else _reason(processes),
        new_processes=tuple(new_process(machine, gpu, variables, row) for row in shown),
    )


def _reason(missing: Absent | Unknown) -> str:
    return missing.reason if isinstance(missing, Unknown) else f"there is no {missing.source}"


def _processes(gpu: Gpu) -> list[Holder]:
    """The processes on the GPU, the largest holder first."""
    if not isinstance(gpu.processes, Known):
        return []
    holders = [_holder(gpu, process) for process in gpu.processes.value]
    return sorted(holders, key=lambda holder: -_amount(holder.held_bytes))


def _amount(held: Observed[int]) -> int:
    return held.value if isinstance(held, Known) else 0


def _holder(gpu: Gpu, process: GpuProcess) -> Holder:
    held_as, what = _judged(gpu, process)
    names = (process.command, process.name)
    return Holder(
        pid=process.pid,
        command=next((name.value for name in names if isinstance(name, Known)), "a process"),
        yours=process.yours,
        frameworks=process.frameworks,
        held_bytes=process.memory_bytes,
        in_use_bytes=process.in_use_bytes,
        held_as=held_as,
        what=what,
        is_asking=process.is_asking,
    )


def _judged(gpu: Gpu, process: GpuProcess) -> tuple[HeldAs, str]:
    loaded, held = process.frameworks, process.memory_bytes
    if isinstance(loaded, Absent):
        return "unknown", f"cannot tell: the process is not visible from here ({_HOLDERS_UNSEEN})"
    if isinstance(loaded, Unknown):
        return "unknown", f"cannot tell: {loaded.reason}"
    if not loaded.value:
        return "unknown", "it has loaded no framework that whygpu knows"
    if not isinstance(held, Known):
        return "unknown", f"cannot tell: {_reason(held)}"
    asked = _asked_at_start(gpu, process, loaded.value, held.value)
    if asked is None:
        return "unknown", "cannot tell: the GPU's memory size is unknown"
    return _by_amount(asked, held.value, isinstance(process.in_use_bytes, Known))


def _asked_at_start(
    gpu: Gpu, process: GpuProcess, frameworks: Sequence[str], held: int
) -> dict[str, Demand] | None:
    """What each framework of the process would ask for if the process were to start now."""
    room = room_of(gpu, given_back=held)
    if not isinstance(room, Known):
        return None
    settings = dict(process.settings.value) if isinstance(process.settings, Known) else {}
    return {name: demand(name, "", settings, room.value) for name in frameworks}


def _by_amount(asked: Mapping[str, Demand], held: int, use_known: bool) -> tuple[HeldAs, str]:
    reserving = [name for name, wants in asked.items() if _fits(wants, held)]
    unknown = "" if use_known else f"; {_use_unknown(reserving or list(asked))}"
    if reserving:
        names = " or ".join(display_name(name) for name in reserving)
        why = asked[reserving[0]].why if len(reserving) == 1 else "by default"
        return "reserved", f"most likely {names} reserved it at the start ({why}){unknown}"
    names = and_list([display_name(name) for name in asked])
    if len(asked) > 1:
        return "unknown", f"{names} are loaded; whygpu cannot tell which of them holds it{unknown}"
    if all(wants.start == "grows" for wants in asked.values()):
        return "as-needed", f"{names} took it as needed and keeps freed blocks for reuse{unknown}"
    return "unknown", (
        f"{names} reserves another amount by default: the program may have set a limit or memory "
        f"growth{unknown}"
    )


def _use_unknown(frameworks: Sequence[str]) -> str:
    ways = [row.use for row in DEFAULTS if row.framework in frameworks and row.use]
    by_asking = f" ({' or '.join(ways)})" if ways else ""
    return f"only the program knows how much of it is in use{by_asking}"


def _fits(wants: Demand, held: int) -> bool:
    """The amount is that of the reservation, with CUDA's own needs beside it."""
    if wants.start != "reserves" or wants.asks is None:
        return False
    return _NEARLY * wants.asks <= held <= wants.asks + LARGEST_OVERHEAD


def _unaccounted(machine: Snapshot, gpu: Gpu) -> Iterator[Holder]:
    """Memory that is in use and that no visible process holds."""
    used = gpu.memory_used_bytes
    if not isinstance(used, Known) or shares_main_memory(gpu):
        # Programs that use no GPU hold main memory as well.
        return
    processes = gpu.processes.value if isinstance(gpu.processes, Known) else ()
    rest = used.value - sum(_amount(process.memory_bytes) for process in processes)
    if rest < _WORTH_TELLING:
        return
    yield Holder(
        pid=None,
        command="",
        yours=Absent("a process"),
        frameworks=Absent("a process"),
        held_bytes=Known(rest, used.source),
        in_use_bytes=Absent("a process"),
        held_as="nobody",
        what=_why_unaccounted(machine, gpu, processes, rest),
    )


def _why_unaccounted(
    machine: Snapshot, gpu: Gpu, processes: Sequence[GpuProcess], rest: int
) -> str:
    if not isinstance(gpu.processes, Known):
        return f"the holder is unknown: {_reason(gpu.processes)}"
    silent = [str(p.pid) for p in processes if not isinstance(p.memory_bytes, Known)]
    if silent:
        pids = ", ".join(silent)
        return f"held by pid {pids} and others: the driver does not report how much each one holds"
    if rest < _DRIVERS_OWN:
        return "used by the driver itself, for a context or a display"
    if isinstance(machine.system.container, Known):
        return "held outside this container, by processes that the driver does not show here"
    unseen = f"held by processes that are not visible from here ({_HOLDERS_UNSEEN})"
    if not isinstance(gpu.memory_reserved_bytes, Known):
        return f"kept by the driver for itself, or {unseen}"
    return f"{unseen}, or by a process that is ending"
