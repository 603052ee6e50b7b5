"""Everything that whygpu saw of one machine and one target, as a value that can be saved."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.amd_driver import AmdDriver
from whygpu.model.driver import NOT_LOOKED, Driver, GraphicsDevice
from whygpu.model.environment import Environment
from whygpu.model.intel_driver import IntelDriver
from whygpu.model.libraries import CudaFiles
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.probe import Probe, ProbeName
from whygpu.model.short_repr import shows_itself
from whygpu.model.stress import NOT_STRESSED, StressedGpu
from whygpu.model.system import System
from whygpu.model.target import Framework, FrameworkName, Target

SCHEMA = 1


@shows_itself
class Snapshot(NamedTuple):
    schema: int
    whygpu: str
    """The version of whygpu that took it."""
    taken: str
    """The date, such as 2026-11-15."""
    system: System
    graphics: Observed[tuple[GraphicsDevice, ...]]
    driver: Driver
    environment: Environment
    cuda: Observed[CudaFiles]
    target: Target
    probes: tuple[Probe, ...]
    probes_left_out: str
    """Why the frameworks were not run; empty if they were."""
    stress: Observed[tuple[StressedGpu, ...]] = NOT_STRESSED
    """The GPUs under load; absent without --stress."""
    amd: Observed[AmdDriver] = NOT_LOOKED
    """Absent if the machine has no GPU of AMD."""
    intel: Observed[IntelDriver] = NOT_LOOKED
    """Absent if the machine has no GPU of Intel."""

    def framework(self, name: FrameworkName) -> Observed[Framework]:
        frameworks = self.target.frameworks
        if not isinstance(frameworks, Known):
            return frameworks
        for framework in frameworks.value:
            if framework.name == name:
                return Known(framework, frameworks.source)
        return Absent(f"{name} in the target's packages")

    def probe(self, name: ProbeName) -> Observed[Probe]:
        for probe in self.probes:
            if probe.name == name:
                return Known(probe, f"{name} probe")
        if self.probes_left_out:
            return Unknown(self.probes_left_out)
        return Absent(f"{name} probe")

    def with_probes(self, probes: tuple[Probe, ...]) -> Snapshot:
        return self._replace(probes=probes, probes_left_out="")
