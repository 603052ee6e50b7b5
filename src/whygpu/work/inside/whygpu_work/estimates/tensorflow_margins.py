"""How far the memory that TensorFlow takes on a GPU is from what is modelled.

Measured on an NVIDIA H200, driver 580.159.04, with TensorFlow 2.21; tests/estimates has the models.
"""

from . import tensorflow_kernels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

LASTING = ("weights", "optimizer")
"""Parts whose size is known."""
BLOCK = 128 << 20
"""Bytes of a block that TensorFlow's allocator gives with an array instead of splitting it."""


class Margins(object):
    """`least` and `most` are multiples of what is modelled, apart from what is known."""

    def __init__(self, least: float, most: float, with_workspace: bool = True) -> None:
        self.least = least
        self.most = most
        self.with_workspace = with_workspace
        """Whether `most` applies to the arrays with the workspace, or to the arrays alone."""

    def around(self, sizes: "Mapping[str, int]") -> "tuple[float, float]":
        """Between which sizes the need lies, in bytes."""
        known = sum(sizes.get(name, 0) for name in LASTING)
        workspace = sizes.get("workspace", 0)
        arrays = sum(sizes.values()) - known - workspace
        largest = self.most * (arrays + workspace if self.with_workspace else arrays)
        # A result may be written over an array that is counted.
        least = self.least * (arrays - sizes.get("results", 0))
        return known + least, known + max(largest, arrays + workspace) + BLOCK


XLA = Margins(0.9, 1.1)
"""Measured: 0.90 to 1.05 in 13 of 14 steps of 10 models, and less in a small one. Two of them
showed what the model lacked, and are no blind test."""
GRAPH = Margins(0.8, 1.45)
"""Measured: 0.84 to 1.04 for recurrent layers, up to 1.42 for attention."""
CONVOLUTIONS = Margins(0.9, 3.2, with_workspace=False)
"""TensorFlow tries cuDNN's algorithms and takes the fastest that finds memory. Measured: 1.2 to 2.5
in the models that this was fitted to, up to 2.7 in others; with the blocks of an allocator that
grows, up to 3.6."""


def of_graph(graph: "Any") -> "Margins":
    """For a graph that TensorFlow runs operation by operation."""
    kinds = {operation.type for operation in graph.get_operations()}
    return CONVOLUTIONS if kinds & tensorflow_kernels.CONVOLUTIONS else GRAPH
