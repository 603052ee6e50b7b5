"""The memory of a graph that TensorFlow runs operation by operation.

TensorFlow allocates the results of an operation when it starts it, and frees an array when the last
operation that reads it has been started. Operations for a GPU are started from one queue; an
operation enters the queue when all operations that it depends on have been started.
"""

import collections

from ..loading import CannotTell
from . import tensorflow_kernels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

GRANULE = 256
"""Bytes; TensorFlow's allocator rounds sizes up to multiples of it."""
SHARING = frozenset(
    (
        *("CheckNumerics", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "PreventGradient"),
        *("ReadVariableOp", "Reshape", "Squeeze", "StopGradient"),
    )
)
"""Their results are their inputs' arrays, under another name or shape."""
OVERWRITING = frozenset(
    (
        *("Abs", "Add", "AddN", "AddV2", "BiasAdd", "Ceil", "Cos", "DivNoNan", "Elu", "EluGrad"),
        *("Erf", "Erfc", "Exp", "Expm1", "Floor", "FloorDiv", "FloorMod", "FusedBatchNormV3"),
        *("LeakyRelu", "LeakyReluGrad", "Log", "Log1p", "LogSoftmax", "Maximum", "Minimum", "Mul"),
        *("Neg", "Pow", "RealDiv", "Reciprocal", "Relu", "Relu6", "Relu6Grad", "ReluGrad", "Round"),
        *("Rsqrt", "RsqrtGrad", "Selu", "SeluGrad", "Sigmoid", "SigmoidGrad", "Sign", "Sin"),
        *("Softmax", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad", "Sqrt", "SqrtGrad"),
        *("Square", "SquaredDifference", "Sub", "Tanh", "TanhGrad", "Xdivy", "Xlogy"),
    )
)
"""They overwrite an input of the same size that no other operation will read."""


class Array(object):
    def __init__(self, size: int, shape: "tuple[int, ...]") -> None:
        self.size = size
        self.shape = shape
        self.awaited = 0
        """The number of operations that will still read it, plus one if it is a result."""
        self.is_result = False


class Peak(object):
    def __init__(self, arrays: "Sequence[Array]", workspace: int) -> None:
        self.arrays = arrays
        """What exists at the peak, without the inputs of the graph."""
        self.workspace = workspace
        """Bytes that the operation at the peak works in."""


def at_peak(graph: "Any") -> "Peak":
    held = _Held(graph)
    for operation in held.operations:
        held.start(operation)
    return held.peak


class _Held(object):
    def __init__(self, graph: "Any") -> None:
        self.operations = list(_in_turn(_needed(graph)))
        self.peak = Peak((), 0)
        self._most_bytes = self._bytes = 0
        self._live: "dict[int, Array]" = {}
        self._array_of: "dict[Any, Array]" = {}
        self._readers: "dict[Any, int]" = {}
        self._results = frozenset(tensor.ref() for tensor in graph.outputs)
        for operation in self.operations:
            for tensor in operation.inputs:
                self._readers[tensor.ref()] = self._readers.get(tensor.ref(), 0) + 1

    def start(self, operation: "Any") -> None:
        if operation.type == "Placeholder":
            return
        inputs = [self._array_of.get(tensor.ref()) for tensor in operation.inputs]
        for place, tensor in enumerate(operation.outputs):
            self._give(operation, inputs, place, tensor)
        workspace = tensorflow_kernels.workspace(operation)
        if self._bytes + workspace > self._most_bytes:
            self._most_bytes = self._bytes + workspace
            self.peak = Peak(tuple(self._live.values()), workspace)
        for array in inputs:
            if array is not None:
                array.awaited -= 1
        for array in inputs + [self._array_of.get(tensor.ref()) for tensor in operation.outputs]:
            if array is not None and not array.awaited and id(array) in self._live:
                del self._live[id(array)]
                self._bytes -= array.size

    def _give(self, operation: "Any", inputs: "Any", place: int, tensor: "Any") -> None:
        if operation.type in SHARING:
            array = inputs[place]
            if array is None:
                # A variable, or an input of the graph.
                return
        else:
            array = self._overwritten(operation, inputs, tensor) or self._new(tensor)
        array.awaited += self._readers.get(tensor.ref(), 0)
        if tensor.ref() in self._results or operation.type == "Const":
            array.awaited += 1
            array.is_result = operation.type != "Const"
        self._array_of[tensor.ref()] = array

    def _overwritten(self, operation: "Any", inputs: "Any", tensor: "Any") -> "Array | None":
        if operation.type not in OVERWRITING:
            return None
        size = _bytes(tensor)
        for array in inputs:
            alone = array is not None and array.awaited == inputs.count(array)
            if alone and array.size == size:
                return array
        return None

    def _new(self, tensor: "Any") -> "Array":
        array = Array(_bytes(tensor), _shape(tensor))
        self._live[id(array)] = array
        self._bytes += array.size
        return array


def _needed(graph: "Any") -> "list[Any]":
    """The operations that a result or a side effect depends on, in order."""
    found = set()
    waiting = [tensor.op for tensor in graph.outputs] + list(graph.control_outputs)
    while waiting:
        operation = waiting.pop()
        if operation.name not in found:
            found.add(operation.name)
            waiting += [tensor.op for tensor in operation.inputs] + list(operation.control_inputs)
    chosen = [operation for operation in graph.get_operations() if operation.name in found]
    for operation in chosen:
        _check(operation)
    return chosen


def _in_turn(operations: "Any") -> "Iterator[Any]":
    """In the order in which they are started."""
    missing, followers = {}, collections.defaultdict(list)
    for operation in operations:
        before = {tensor.op.name for tensor in operation.inputs}
        before.update(each.name for each in operation.control_inputs)
        missing[operation.name] = len(before)
        for name in before:
            followers[name].append(operation)
    queue = collections.deque(each for each in operations if not missing[each.name])
    while queue:
        operation = queue.popleft()
        yield operation
        for follower in followers[operation.name]:
            missing[follower.name] -= 1
            if not missing[follower.name]:
                queue.append(follower)


def _check(operation: "Any") -> None:
    if any(value.HasField("func") for value in operation.node_def.attr.values()):
        raise CannotTell(
            "TensorFlow runs a loop or a branch in it (%s, of %s), whose memory shows "
            "only when it runs" % (operation.name, operation.type)
        )
    for place, tensor in enumerate(operation.outputs):
        known = tensor.shape.is_fully_defined() or _is_small(tensor)
        if not known and tensorflow_kernels.hidden_bytes(operation, place) is None:
            raise CannotTell(
                "the size of an array depends on values (%s, of %s)"
                % (operation.name, operation.type)
            )


def _is_small(tensor: "Any") -> bool:
    """Handles, and lists of whole numbers: shapes and axes, which stay in the computer's memory."""
    return not tensor.dtype.size or (tensor.dtype.is_integer and tensor.shape.rank == 1)


def _shape(tensor: "Any") -> "tuple[int, ...]":
    return tuple(tensor.shape.as_list()) if tensor.shape.is_fully_defined() else ()


def _bytes(tensor: "Any") -> int:
    if tensor.shape.is_fully_defined():
        size = tensor.shape.num_elements() * (tensor.dtype.size or 0)
    else:
        size = tensorflow_kernels.hidden_bytes(tensor.op, tensor.value_index) or 0
    return (size + GRANULE - 1) // GRANULE * GRANULE
