"""The facts that decide whether a ROCm build can use this machine's AMD GPU."""

from __future__ import annotations

from whygpu.causes.evidence.framework_builds import builds_for
from whygpu.model.amd_driver import AmdDriver
from whygpu.model.observed import need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

KFD = "/dev/kfd"


def rocm_frameworks(machine: Snapshot) -> tuple[Framework, ...]:
    """The frameworks that were built for AMD GPUs.

    Older snapshots do not describe the driver of AMD GPUs, which is no gap for other builds.
    """
    return builds_for(machine, "rocm", "a framework that is built for ROCm")


def amd_driver(machine: Snapshot) -> AmdDriver:
    """The driver's facts; without an AMD GPU, the cause that asks does not apply."""
    return need(machine.amd)
