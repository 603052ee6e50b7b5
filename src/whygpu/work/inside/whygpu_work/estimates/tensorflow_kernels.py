"""Memory of TensorFlow's GPU kernels that the shapes in a graph do not show."""

from .cudnn_recurrent import Recurrent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECURRENT = "CudnnRNNV3"
RECURRENT_BACKWARD = "CudnnRNNBackpropV3"
CONVOLUTIONS = frozenset(
    kind + rest
    for kind in ("Conv2D", "Conv3D")
    for rest in ("", "BackpropInput", "BackpropFilter", "BackpropInputV2", "BackpropFilterV2")
)
RESERVED_OUTPUT = 3
"""The place of what is kept for the backward pass among the results of RECURRENT."""


def hidden_bytes(operation: "Any", place: int) -> "int | None":
    """The size of a result whose shape is known only when it runs; None if nobody knows."""
    if operation.type != RECURRENT:
        return None
    if place != RESERVED_OUTPUT:
        # It stays in main memory.
        return 0
    rows, _, number_bytes = _sequences(operation)
    return _layer(operation).reserve(rows, number_bytes)


def workspace(operation: "Any") -> int:
    """Bytes that exist only while the operation is started."""
    if operation.type in CONVOLUTIONS:
        return _of_convolution(operation)
    if operation.type not in (RECURRENT, RECURRENT_BACKWARD):
        return 0
    rows, size, number_bytes = _sequences(operation)
    weights = operation.inputs[3].shape.num_elements()
    forward = operation.type == RECURRENT
    return _layer(operation).workspace(rows, size, weights, number_bytes, forward)


def _of_convolution(operation: "Any") -> int:
    """cuDNN's copies of the operands and the result, in the layout that tensor cores need."""
    tensors = [*operation.inputs, *operation.outputs]
    kernel = min(
        (each for each in tensors if each.shape.rank and each.shape.rank > 3),
        key=lambda each: each.shape.num_elements(),
    )
    if kernel.shape[:-2].num_elements() == 1:
        # A kernel of one point is a plain product.
        return 0
    return sum(
        each.shape.num_elements() * each.dtype.size for each in tensors if each.shape.rank > 3
    )


def _layer(operation: "Any") -> "Recurrent":
    kind = operation.get_attr("rnn_mode").decode().upper()
    return Recurrent(kind, operation.inputs[1].shape[-1], copied=True)


def _sequences(operation: "Any") -> "tuple[int, int, int]":
    """The steps of all examples, the size of one, and the bytes of a number."""
    input = operation.inputs[0]
    size = input.shape[-1]
    return input.shape.num_elements() // size, size, input.dtype.size
