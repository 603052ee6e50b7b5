"""What ROCm needs of a machine with an AMD GPU, as its files show it."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.driver import DeviceNode
from whygpu.model.observed import Observed


class AmdGpu(NamedTuple):
    """A GPU that the kernel offers for computing."""

    node: int
    """Its number in the kernel's list, which also has the processors."""
    target: str
    """What its code is compiled for: gfx90a, gfx1100."""


class AmdDriver(NamedTuple):
    gpus: Observed[tuple[AmdGpu, ...]]
    """From the kernel's compute driver (KFD); absent if that is not loaded."""
    device_nodes: Observed[tuple[DeviceNode, ...]]
    """/dev/kfd and /dev/dri/renderD*; both are needed."""
    rocm: Observed[str]
    """The release that is installed in /opt/rocm. PyTorch brings its own libraries."""
