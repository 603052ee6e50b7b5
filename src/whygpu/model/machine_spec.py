"""The facts of a machine that decide which releases fit it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Known, Observed

GpuKind = Literal["data-center", "workstation", "geforce", "jetson"]
"""NVIDIA's forward-compatibility packages work on data-center GPUs; Jetsons have other wheels."""

PLATFORMS = {
    "linux_x86_64": "Linux on x86_64",
    "linux_aarch64": "Linux on aarch64",
    "win_amd64": "Windows",
    "macosx_arm64": "macOS on Apple silicon",
    "macosx_x86_64": "macOS on Intel",
}
"""The platforms that a plan can be for, with their names."""


def dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


class PlannedGpu(NamedTuple):
    name: str
    capability: tuple[int, int]
    kind: GpuKind | None
    """None for a model that is not on record."""

    def __str__(self) -> str:
        return f"{self.name} ({dotted(self.capability)})"


class MachineSpec(NamedTuple):
    python: Observed[str]
    """Such as 3.11 or 3.11.9."""
    platform: Observed[str]
    """A key of PLATFORMS."""
    glibc: Observed[str]
    """Absent if the C library is not glibc, or does not matter."""
    driver: Observed[str]
    gpus: Observed[tuple[PlannedGpu, ...]]
    free_threaded: bool = False
    """The Python is a build without the global interpreter lock, which needs wheels of its own."""

    @property
    def python_minor(self) -> str | None:
        """The minor version, such as 3.11; None if it is not known."""
        known = self.python
        return ".".join(known.value.split(".")[:2]) if isinstance(known, Known) else None

    @property
    def python_build(self) -> str | None:
        """The minor version, as interpreters and installers name its build: 3.11, 3.14t."""
        minor = self.python_minor
        return f"{minor}t" if minor is not None and self.free_threaded else minor

    @property
    def platform_name(self) -> str:
        """The platform; the most common one if it is not known."""
        return self.platform.value if isinstance(self.platform, Known) else "linux_x86_64"
