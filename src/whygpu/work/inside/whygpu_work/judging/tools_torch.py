"""What local.py needs from PyTorch: tensors in structures, and facts about modules."""

import numpy

from .. import trees
from ..lanes import taps_torch
from . import inner_rounding, reductions
from .tools_keras import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class TorchTools(object):
    def __init__(self, torch: "Any") -> None:
        self._torch = torch

    def flat(self, structure: "Any") -> "list[Any]":
        return trees.flat(structure, self._is_tensor)

    def replaced(self, structure: "Any", change: "Callable[[Any], Any]") -> "Any":
        return trees.replaced(structure, self._is_tensor, change)

    def _is_tensor(self, item: "Any") -> bool:
        return isinstance(item, self._torch.Tensor)

    def to_numpy(self, tensor: "Any") -> "numpy.ndarray":
        return numpy.asarray(tensor.detach().cpu().numpy())

    def tensor(self, array: "numpy.ndarray") -> "Any":
        return self._torch.as_tensor(numpy.array(array))

    def like(self, tensor: "Any", array: "numpy.ndarray") -> "Any":
        return self.tensor(array).to(tensor.device)

    def weights(self, part: "Any") -> "list[numpy.ndarray]":
        return [self.to_numpy(each).copy() for each in self._kept(part)]

    def set_weights(self, part: "Any", weights: "Any") -> None:
        with self._torch.no_grad():
            for each, array in zip(self._kept(part), weights):
                each.copy_(self.tensor(array))

    def _kept(self, part: "Any") -> "list[Any]":
        """None for a container: its weights belong to the steps inside."""
        if taps_torch.is_container(part):
            return []
        return list(part.parameters()) + list(part.buffers())

    def rounded_inside(self, move: "Callable[[Any, bool], Any]") -> "Any":
        """A context in which `move` changes the array that each operation makes."""
        return inner_rounding.changed(["torch"], move)

    def keeps_state(self, part: "Any") -> bool:
        """Modules of torch.nn change their state only in training."""
        return bool(part.training)

    def facts(self, part: "Any", given: "Any", outputs: "Any") -> "Facts":
        names = [cls.__name__ for cls in type(part).__mro__]
        own = [] if taps_torch.is_container(part) else part.parameters()
        weights = [_outputs_last(names, tuple(each.shape)) for each in own]
        inputs = [tuple(tensor.shape) for tensor in self.flat(given)]
        shapes = [array.shape for array in outputs]
        return Facts(
            reductions.reduction(names, "", weights, inputs, shapes),
            reductions.makes_products(names, weights),
        )


def _outputs_last(names: "Sequence[str]", shape: "tuple[int, ...]") -> "tuple[int, ...]":
    """PyTorch has the axis of the outputs first; transposed convolutions have it second."""
    if len(shape) < 2:
        return shape
    if any("Transpose" in name for name in names):
        return (shape[0],) + shape[2:] + (shape[1],)
    return shape[1:] + (shape[0],)
