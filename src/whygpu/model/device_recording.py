"""What a GPU did while the profiler of a framework ran, on the clock of the sampled stacks."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ProfilerRun(NamedTuple):
    """One run of a framework's profiler, as the process recorded it. Times as in ProcessProfile."""

    kind: str = ""
    """The format of its file: kineto or xplane."""
    profiler: str = "the framework's profiler"
    begin: float = 0.0
    end: float = 0.0
    pauses: tuple[tuple[float, ...], ...] = ()
    """Begin and end of each time in which the program waited for the profiler."""
    marks: tuple[tuple[float, ...], ...] = ()
    """Before and after each call that the profiler has recorded as well."""
    files: tuple[str, ...] = ()
    problem: str = ""
    """Why there is no file."""

    @property
    def has_marks(self) -> bool:
        """There is one at the beginning and one at the end."""
        return len(self.marks) >= 2 and all(len(mark) == 2 for mark in self.marks)


class Span(NamedTuple):
    """A part of the time, in seconds after the sampling began."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class Kernel(NamedTuple):
    """One execution of a kernel."""

    begin: float
    end: float
    name: str
    blocks: int = 0
    """0 if it is not known."""

    @property
    def seconds(self) -> float:
        return self.end - self.begin


Direction = Literal["to the GPU", "from the GPU", "on the GPU"]


class Copy(NamedTuple):
    """One copy of memory."""

    begin: float
    end: float
    direction: Direction
    bytes: int = 0
    pageable: bool | None = None
    """The memory of the host is ordinary memory; None if the profiler does not say."""

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class DeviceRecording(NamedTuple):
    """What one GPU did between `begin` and `end`."""

    begin: float
    end: float
    device: int = 0
    kernels: tuple[Kernel, ...] = ()
    """In the order of their beginnings, as are the next five."""
    copies: tuple[Copy, ...] = ()
    waits: tuple[Span, ...] = ()
    """Calls of CUDA in which a thread of the program waited for the GPU."""
    calls: tuple[Span, ...] = ()
    """Calls of CUDA, joined where they overlap; empty if the profiler does not record them."""
    input_waits: tuple[Span, ...] = ()
    """When a compiled function waited for the input pipeline."""
    staging: tuple[Span, ...] = ()
    """When a thread of the framework copied data for the GPU from ordinary to pinned memory."""
    multiprocessors: int = 0
    """Of the GPU; 0 if it is not known."""
    devices: int = 1
    """GPUs that computed."""

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class GpuReading(NamedTuple):
    """What NVML said at one moment."""

    time: float
    utilization: int | None = None
    """Per cent of the time, lately, in which any kernel ran."""
    clock_mhz: int | None = None
    reasons: int | None = None
    """Bits: why the clock is not higher."""


class GpuProcess(NamedTuple):
    """A process that has a GPU open, by NVML."""

    pid: int
    memory_bytes: int = 0


class GpuReadings(NamedTuple):
    """What NVML said of one GPU while the program ran."""

    number: int = 0
    """The number of the GPU in the program."""
    pid: int = 0
    most_clock_mhz: int | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    """None if NVML does not say."""
    readings: tuple[GpuReading, ...] = ()

    @property
    def others(self) -> tuple[GpuProcess, ...]:
        """Processes beside this one that have the GPU open."""
        listed = self.processes or ()
        if any(each.pid == self.pid for each in listed):
            return tuple(each for each in listed if each.pid != self.pid)
        # In a container the numbers may be those of the host: one of them is this process.
        return listed[1:]
