"""How far the memory that a program takes on a GPU may be from its estimate."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

LASTING = ("weights", "optimizer")
"""Parts whose size is known."""
BLOCK = 128 << 20
"""Bytes of a block that XLA's and TensorFlow's allocator gives with an array instead of
splitting it."""


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
