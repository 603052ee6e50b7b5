"""How far the memory that TensorFlow takes on a GPU is from what is modelled.

Measured on an NVIDIA H200, driver 580.159.04, with TensorFlow 2.21; tests/estimates has the models.
"""

from . import tensorflow_kernels
from .margins import Margins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
