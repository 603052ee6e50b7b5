"""What a build for Intel GPUs (XPU) needs of a machine, as its files show it."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.driver import DeviceNode
from whygpu.model.observed import Observed


class IntelDriver(NamedTuple):
    device_nodes: Observed[tuple[DeviceNode, ...]]
    """/dev/dri/renderD*, those of the Intel GPUs only."""
    level_zero: Observed[str]
    """Where the loader finds Intel's driver for Level Zero (libze_intel_gpu.so.1), through which
    frameworks compute. It belongs to the system, and no package of Python has it."""
