"""What local.py needs from Keras: tensors in structures, their masks, and facts about layers."""

import collections

import numpy

from .. import trees
from ..lanes import taps_keras
from . import inner_rounding, reductions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

Facts = collections.namedtuple("Facts", "reduction products")


class KerasTools(object):
    """For Keras 3 of any backend, and for the Keras 2 of TensorFlow."""

    def __init__(self, keras: "Any") -> None:
        self._keras = keras
        self._ops = getattr(keras, "ops", None)
        if self._ops is None:
            import tensorflow

            self._tensorflow = tensorflow

    def flat(self, structure: "Any") -> "list[Any]":
        return trees.flat(trees.in_key_order(structure), self._is_tensor)

    def replaced(self, structure: "Any", change: "Callable[[Any], Any]") -> "Any":
        return trees.replaced(trees.in_key_order(structure), self._is_tensor, change)

    def _is_tensor(self, item: "Any") -> bool:
        check = self._ops.is_tensor if self._ops else self._tensorflow.is_tensor
        return bool(check(item))

    def to_numpy(self, tensor: "Any") -> "numpy.ndarray":
        convert = self._ops.convert_to_numpy if self._ops else (lambda eager: eager.numpy())
        return numpy.asarray(convert(tensor))

    def tensor(self, array: "numpy.ndarray") -> "Any":
        if self._ops:
            return self._ops.convert_to_tensor(array, dtype=array.dtype.name)
        return self._tensorflow.convert_to_tensor(array)

    def like(self, tensor: "Any", array: "numpy.ndarray") -> "Any":
        """The array as a tensor that replaces another one, with the mask of that one."""
        result = self.tensor(array)
        if self._ops:
            from keras.src import backend

            mask = backend.get_keras_mask(tensor)
            if mask is not None:
                backend.set_keras_mask(result, mask)
        elif getattr(tensor, "_keras_mask", None) is not None:
            result._keras_mask = tensor._keras_mask
        return result

    def weights(self, layer: "Any") -> "list[numpy.ndarray]":
        """None for a container: its weights belong to the steps inside."""
        if taps_keras.is_container(layer) or not hasattr(layer, "get_weights"):
            return []
        return layer.get_weights()

    def set_weights(self, layer: "Any", weights: "Sequence[numpy.ndarray]") -> None:
        if weights:
            layer.set_weights(weights)

    def rounded_inside(self, move: "Callable[[Any, bool], Any]") -> "Any":
        """A context in which `move` changes the array that each operation makes."""
        backend = self._keras.backend.backend() if self._ops is not None else "tensorflow"
        return inner_rounding.changed([backend], move)

    def keeps_state(self, layer: "Any") -> bool:
        return bool(getattr(layer, "stateful", False))

    def facts(self, layer: "Any", given: "Any", outputs: "Any") -> "Facts":
        names = [cls.__name__ for cls in type(layer).__mro__]
        activation = getattr(getattr(layer, "activation", None), "__name__", "")
        weights = [_outputs_last(names, array.shape) for array in self.weights(layer)]
        inputs = [tuple(tensor.shape) for tensor in self.flat(given)]
        shapes = [array.shape for array in outputs]
        return Facts(
            reductions.reduction(names, activation, weights, inputs, shapes),
            reductions.makes_products(names, weights),
        )


def _outputs_last(names: "Sequence[str]", shape: "tuple[int, ...]") -> "tuple[int, ...]":
    """Kernels of transposed convolutions have the axis of their inputs last."""
    if len(shape) > 2 and any("Transpose" in name for name in names):
        return shape[:-2] + (shape[-1], shape[-2])
    return tuple(shape)
