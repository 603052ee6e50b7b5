"""What local.py asks of PyTorch: tensors in structures, and facts of modules."""

import numpy

from .. import trees
from ..lanes import taps_torch
from . import reductions
from .tools_keras import Facts


class TorchTools(object):
    def __init__(self, torch):
        self._torch = torch

    def flat(self, structure):
        return trees.flat(structure, self._is_tensor)

    def replaced(self, structure, change):
        return trees.replaced(structure, self._is_tensor, change)

    def _is_tensor(self, item):
        return isinstance(item, self._torch.Tensor)

    def to_numpy(self, tensor):
        return numpy.asarray(tensor.detach().cpu().numpy())

    def tensor(self, array):
        return self._torch.as_tensor(numpy.array(array))

    def like(self, tensor, array):
        return self.tensor(array).to(tensor.device)

    def weights(self, part):
        return [self.to_numpy(each).copy() for each in self._kept(part)]

    def set_weights(self, part, weights):
        with self._torch.no_grad():
            for each, array in zip(self._kept(part), weights):
                each.copy_(self.tensor(array))

    def _kept(self, part):
        """None of what is looked into: they are those of the steps inside."""
        if taps_torch.is_container(part):
            return []
        return list(part.parameters()) + list(part.buffers())

    def keeps_state(self, part):
        """Nothing that torch.nn has does so but in training."""
        return bool(part.training)

    def facts(self, part, given, outputs):
        names = [cls.__name__ for cls in type(part).__mro__]
        own = [] if taps_torch.is_container(part) else part.parameters()
        weights = [_outputs_last(names, tuple(each.shape)) for each in own]
        inputs = [tuple(tensor.shape) for tensor in self.flat(given)]
        shapes = [array.shape for array in outputs]
        return Facts(
            reductions.reduction(names, "", weights, inputs, shapes),
            reductions.makes_products(names, weights),
        )


def _outputs_last(names, shape):
    """PyTorch has the axis of the outputs first; transposed convolutions have it second."""
    if len(shape) < 2:
        return shape
    if any("Transpose" in name for name in names):
        return (shape[0],) + shape[2:] + (shape[1],)
    return shape[1:] + (shape[0],)
