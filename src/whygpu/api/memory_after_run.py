"""What is known about memory after a run that failed, from every source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from whygpu.host.local import LocalHost
from whygpu.launch.program_process import Ended
from whygpu.memory.memory_end import Run, memory_end
from whygpu.model.driver import Gpu
from whygpu.model.memory_use import MemoryEnd, ProcessMemory
from whygpu.model.observed import Known
from whygpu.model.policy import RunReport
from whygpu.model.snapshot import Snapshot
from whygpu.privacy import Redactor
from whygpu.readers.log import read_text


def memory_end_of(
    report: RunReport, ended: Ended, text: str, machine: Snapshot
) -> MemoryEnd | None:
    """How memory ended the run; None if nothing says that it did. `machine` is its state now.

    Private data is removed: a control group may have its user's name.
    """
    shared = machine.system.memory.shared_bytes
    end = memory_end(
        Run(
            error_text=text,
            records=report.records,
            host=ended.memory,
            policy=report.policy,
            progress=len(read_text(text).progress),
            gpus=_gpus(machine),
            shared_total=shared.value if isinstance(shared, Known) else None,
            limit_overruled=any(
                each.part == "memory" and each.state == "not-in-force" for each in report.in_force
            ),
        )
    )
    return Redactor(LocalHost().platform).value(end)


def with_estimate(
    end: MemoryEnd,
    report: RunReport,
    machine: Snapshot,
    environ: Mapping[str, str],
    on_progress: Callable[[str], None],
) -> MemoryEnd:
    """The same with what an estimate says would fit, if that helps and there is a framework.

    `environ` is the program's. KeyboardInterrupt ends the estimate at once.
    """
    from whygpu.memory.gpu_rooms import capability_of
    from whygpu.memory.what_fits import fit_estimate, room_for, worth_asking

    if not worth_asking(end) or not any(record.frameworks for record in report.records):
        return end
    memory = _decisive_memory(report)
    if memory.error and memory.work is None:
        return end
    gpus = _gpus(machine)
    gpu = gpus[0] if len(gpus) == 1 else None
    total = gpu.memory_total_bytes if gpu is not None else None
    room = room_for(end, memory, total.value if isinstance(total, Known) else None)
    capability = capability_of(gpu) if gpu is not None and end.place == "gpu" else None
    found = fit_estimate(end, memory.work, room, environ, on_progress, capability=capability)
    return Redactor(LocalHost().platform).value(end._replace(estimate=found))


def _decisive_memory(report: RunReport) -> ProcessMemory:
    """Of the last process that recorded the exception that ended it, or else that began a step."""
    failed = [record.memory for record in report.records if record.memory.error]
    begun = [record.memory for record in report.records if record.memory.work is not None]
    return (failed or begun or [ProcessMemory()])[-1]


def _gpus(machine: Snapshot) -> tuple[Gpu, ...]:
    gpus = machine.driver.gpus
    return gpus.value if isinstance(gpus, Known) else ()
