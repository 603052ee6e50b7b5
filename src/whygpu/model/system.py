"""The computer underneath: processor, memory, operating system, container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from whygpu.model.observed import Observed

OperatingSystem = Literal["linux", "darwin", "windows", "other"]
ContainerRuntime = Literal[
    "docker", "podman", "kubernetes", "containerd", "lxc", "apptainer", "nspawn", "other"
]


@dataclass(frozen=True, slots=True)
class Cpu:
    architecture: str
    """As the kernel names it: x86_64, aarch64, arm64."""
    model: Observed[str]
    instruction_sets: Observed[tuple[str, ...]]
    """The kernel's flags that framework builds depend on (avx, avx2, fma, avx512f, ...), sorted."""
    cores: int


@dataclass(frozen=True, slots=True)
class Memory:
    total_bytes: Observed[int]
    available_bytes: Observed[int]
    shared_bytes: Observed[int]
    """Size of /dev/shm, through which data-loader workers pass their batches."""


@dataclass(frozen=True, slots=True)
class Libc:
    name: Literal["glibc", "musl", "other"]
    version: str


@dataclass(frozen=True, slots=True)
class Container:
    runtime: ContainerRuntime
    driver_mounts: Observed[tuple[str, ...]]
    """Driver files that the host's container hook mounted into this container."""


@dataclass(frozen=True, slots=True)
class System:
    os: OperatingSystem
    kernel: str
    distribution: Observed[str]
    libc: Observed[Libc]
    cpu: Cpu
    memory: Memory
    wsl: Observed[int]
    """The WSL version (1 or 2); absent outside WSL."""
    container: Observed[Container]
    """Absent when this is not a container."""
