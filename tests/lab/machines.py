"""Hardware and installations that many scenarios share."""

from __future__ import annotations

from tests.lab.bench import Bench
from tests.lab.stage import EVERY_NODE, PciDevice, Stage

MODULE = "580.65.06"
"""The version of the stub driver, and so of the kernel module that goes with it."""

GPU_MACHINE = Stage(pci=(PciDevice(),), module=MODULE, nodes=EVERY_NODE)
"""An NVIDIA GPU with its module and device nodes, as they should be."""

NO_GPU_MACHINE = Stage(pci=())


def complete_cuda(bench: Bench) -> None:
    """Every CUDA library that TensorFlow 2.21 wants, where it finds them."""
    bench.cuda_wheels()
    bench.search_cusolver()
