"""The facts that decide whether a ROCm build can use this machine's AMD GPU."""

from __future__ import annotations

from whygpu.model.amd_driver import AmdDriver
from whygpu.model.driver import GraphicsDevice
from whygpu.model.observed import Known, NotApplicable, Observed, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

KFD = "/dev/kfd"


def rocm_frameworks(machine: Snapshot) -> tuple[Framework, ...]:
    """The frameworks that were built for AMD GPUs; without one, the cause that asks does not apply.

    Older snapshots do not describe the driver of AMD GPUs, which is no gap for other builds.
    """
    found = tuple(
        framework
        for framework in need(machine.target.frameworks)
        if isinstance(framework.build.kind, Known) and framework.build.kind.value == "rocm"
    )
    if not found:
        raise NotApplicable("a framework that is built for ROCm")
    return found


def amd_driver(machine: Snapshot) -> AmdDriver:
    """The driver's facts; without an AMD GPU, the cause that asks does not apply."""
    return need(machine.amd)


def amd_devices(machine: Snapshot) -> tuple[GraphicsDevice, ...]:
    graphics: Observed[tuple[GraphicsDevice, ...]] = machine.graphics
    found = graphics.value if isinstance(graphics, Known) else ()
    return tuple(device for device in found if device.vendor == "amd")
