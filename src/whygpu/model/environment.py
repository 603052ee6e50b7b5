"""Environment variables that change GPU behaviour, and what they mean on this machine."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.observed import Absent, Known, Observed


class Variable(NamedTuple):
    name: str
    value: str
    meaning: str
    """What this value does here, in one sentence."""
    problem: str = ""
    """Why it has no effect, or not the intended one; empty if it works."""


class IgnoredEntry(NamedTuple):
    text: str
    reason: str


class GpuSelection(NamedTuple):
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible."""

    text: str
    visible: Observed[tuple[int, ...]]
    """Indices in PCI bus order; unknown if the driver cannot list the GPUs."""
    ignored: tuple[IgnoredEntry, ...]


class Environment(NamedTuple):
    variables: tuple[Variable, ...]
    visible_gpus: Observed[GpuSelection]
    """Absent when CUDA_VISIBLE_DEVICES is not set: every GPU is visible."""

    def get(self, name: str) -> Observed[str]:
        """The value of one variable of the allow-list."""
        for variable in self.variables:
            if variable.name == name:
                return Known(variable.value, f"environment variable {name}")
        return Absent(f"environment variable {name}")
