"""What an XLA program's text says about the memory that the program takes on a GPU."""

from ...loading import CannotTell
from . import hlo_graph, hlo_text, memory, workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

    from .hlo_graph import Node


class Modelled(object):
    def __init__(self, size: int, workspace: int, results: int, live: "list[Node]") -> None:
        self.size = size
        """Bytes of temporary arrays at the peak."""
        self.workspace = workspace
        """Bytes by which the libraries' workspaces raise it."""
        self.results = results
        """Bytes of what the program gives back."""
        self.live = live
        """The arrays that are there then: nodes of estimate_xla_graph."""

    def gradients(self, weights: "Iterable[tuple[int, ...]]") -> int:
        """Bytes of those that look like the gradient of one of the weights, by their shapes."""
        shapes = {tuple(shape) for shape in weights if len(shape) > 1}
        found = [node for node in self.live if node.shape and node.shape[1] in shapes]
        return sum(node.size for node in found if node.operation not in COPIES)


COPIES = ("convert", "reverse", "transpose")
"""What is done to a weight before it is used."""


def model(text: str, capability: "tuple[int, int]") -> "Modelled":
    """`capability` is that of the GPU which is meant."""
    try:
        graph = hlo_graph.build(hlo_text.parse(text))
        workspace = workspaces.rule(capability)
        peak = memory.peak(graph)
        raised = memory.peak(graph, workspace)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        # A compiler's text is no promise: another release may write what is not known here.
        raise CannotTell(
            "the program's text is not understood (%s: %s)" % (type(error).__name__, error)
        )
    results = sum(node.size for node in graph.roots)
    return Modelled(peak.size, raised.size - peak.size, results, peak.live)
