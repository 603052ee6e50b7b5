"""Models the GPU memory of an XLA program from its text."""

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
        """Bytes by which the workspaces of libraries raise the peak."""
        self.results = results
        """Bytes of the program's results."""
        self.live = live
        """The arrays that exist at the peak: nodes of hlo_graph."""

    def gradients(self, weights: "Iterable[tuple[int, ...]]") -> int:
        """Bytes of the arrays that have the shape of a weight, so are probably its gradient."""
        shapes = {tuple(shape) for shape in weights if len(shape) > 1}
        found = [node for node in self.live if node.shape and node.shape[1] in shapes]
        return sum(node.size for node in found if node.operation not in COPIES)


COPIES = ("convert", "reverse", "transpose")
"""Operations on a weight before it is used."""


def model(text: str, capability: "tuple[int, int]") -> "Modelled":
    """`capability`: the compute capability of the GPU."""
    try:
        graph = hlo_graph.build(hlo_text.parse(text))
        workspace = workspaces.rule(capability)
        peak = memory.peak(graph)
        raised = memory.peak(graph, workspace)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        # The format of the text is not stable: another release may use syntax unknown here.
        raise CannotTell(
            "the text of the program cannot be read (%s: %s)" % (type(error).__name__, error)
        )
    results = sum(node.size for node in graph.roots)
    return Modelled(peak.size, raised.size - peak.size, results, peak.live)
