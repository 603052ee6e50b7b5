"""The computer: processor, memory, operating system, container."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed, Unknown

OperatingSystem = Literal["linux", "darwin", "windows", "other"]
ContainerRuntime = Literal[
    "docker", "podman", "kubernetes", "containerd", "lxc", "apptainer", "nspawn", "other"
]


TrialOutcome = Literal["runs", "traps", "not-permitted", "unclear"]


class InstructionTrial(NamedTuple):
    """The result of executing an instruction of one instruction set."""

    feature: str
    """As the kernel's flags name it: avx, avx512f, amx_tile."""
    outcome: TrialOutcome
    """not-permitted: the kernel refuses the processor state that the instruction needs. Programs
    ask the kernel first, and do not use the instruction if it refuses."""


class Cpu(NamedTuple):
    architecture: str
    """As the kernel names it: x86_64, aarch64, arm64."""
    model: Observed[str]
    instruction_sets: Observed[tuple[str, ...]]
    """The kernel's flags that framework builds depend on (avx, avx2, fma, avx512f, ...), sorted."""
    cores: int
    trials: Observed[tuple[InstructionTrial, ...]] = Unknown("no instruction was executed")
    """Made only if one is suspected: a processor can list an instruction that traps here."""


class Memory(NamedTuple):
    total_bytes: Observed[int]
    available_bytes: Observed[int]
    shared_bytes: Observed[int]
    """Size of /dev/shm, through which data-loader workers pass their batches."""


class Libc(NamedTuple):
    name: Literal["glibc", "musl", "other"]
    version: str


class Container(NamedTuple):
    runtime: ContainerRuntime
    driver_mounts: Observed[tuple[str, ...]]
    """Driver files that the host's container hook mounted into this container."""


class System(NamedTuple):
    os: OperatingSystem
    kernel: str
    distribution: Observed[str]
    libc: Observed[Libc]
    cpu: Cpu
    memory: Memory
    wsl: Observed[int]
    """The WSL version (1 or 2); absent outside WSL."""
    container: Observed[Container]
    """Absent if this is not a container."""
