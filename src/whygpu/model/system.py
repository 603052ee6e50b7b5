"""The computer underneath: processor, memory, operating system, container."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed

OperatingSystem = Literal["linux", "darwin", "windows", "other"]
ContainerRuntime = Literal[
    "docker", "podman", "kubernetes", "containerd", "lxc", "apptainer", "nspawn", "other"
]


class Cpu(NamedTuple):
    architecture: str
    """As the kernel names it: x86_64, aarch64, arm64."""
    model: Observed[str]
    instruction_sets: Observed[tuple[str, ...]]
    """The kernel's flags that framework builds depend on (avx, avx2, fma, avx512f, ...), sorted."""
    cores: int


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
    """Absent when this is not a container."""
