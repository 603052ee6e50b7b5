"""How much of a GPU's memory is in use, and by which processes."""

from __future__ import annotations

from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.figures import first_of
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.units import size_text

_MOST_NAMED = 3


def share_used(gpu: Gpu) -> Observed[float]:
    """The share of the GPU's memory that is in use, from 0 to 1."""
    total, used = gpu.memory_total_bytes, gpu.memory_used_bytes
    if not isinstance(total, Known):
        return total
    if not isinstance(used, Known):
        return used
    if total.value <= 0:
        return Unknown("the driver reports a memory size of 0")
    return Known(used.value / total.value, used.source)


def holders(gpu: Gpu) -> tuple[GpuProcess, ...]:
    """The processes on the GPU, the one with the most memory first."""
    if not isinstance(gpu.processes, Known):
        return ()
    return tuple(sorted(gpu.processes.value, key=_memory, reverse=True))


def _memory(process: GpuProcess) -> int:
    return process.memory_bytes.value if isinstance(process.memory_bytes, Known) else 0


def described(process: GpuProcess) -> str:
    """For example: python (pid 4711, 40.1 GiB)."""
    name = process.name.value if isinstance(process.name, Known) else "a process"
    memory = process.memory_bytes
    size = f", {size_text(memory.value)}" if isinstance(memory, Known) else ""
    own = ", the program that asks" if is_asking(process) else ""
    return f"{name} (pid {process.pid}{size}{own})"


def is_asking(process: GpuProcess) -> bool:
    """Whether it is surely the program that calls whygpu, such as the kernel of a notebook."""
    return isinstance(process.is_asking, Known) and process.is_asking.value


def named_holders(gpu: Gpu) -> str:
    """The processes that hold the memory, as text; empty if the driver does not report them."""
    return first_of([described(process) for process in holders(gpu)], _MOST_NAMED)
