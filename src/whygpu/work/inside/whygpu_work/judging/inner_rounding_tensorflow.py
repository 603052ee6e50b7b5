"""Changes the result of each operation of TensorFlow; see inner_rounding.py.

Functions are run operation by operation for that. Their operations are executed by three functions
of the C extension, which the generated Python code looks up at each call.
"""

import contextlib

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

EXACT = frozenset(
    [
        "Abs",
        "BatchToSpaceND",
        "BroadcastTo",
        "Cast",
        "Ceil",
        "ClipByValue",
        "ConcatV2",
        "Const",
        "DepthToSpace",
        "EnsureShape",
        "ExpandDims",
        "ExtractImagePatches",
        "Fill",
        "Floor",
        "Gather",
        "GatherNd",
        "GatherV2",
        "Identity",
        "IdentityN",
        "LinSpace",
        "MatrixBandPart",
        "MatrixDiagPartV3",
        "MatrixDiagV3",
        "MatrixSetDiagV3",
        "Max",
        "MaxPool",
        "MaxPool3D",
        "MaxPoolV2",
        "Maximum",
        "Min",
        "Minimum",
        "MirrorPad",
        "Neg",
        "OneHot",
        "OnesLike",
        "Pack",
        "Pad",
        "PadV2",
        "PlaceholderWithDefault",
        "PreventGradient",
        "Range",
        "ReadVariableOp",
        "Relu",
        "Relu6",
        "Reshape",
        "ResourceGather",
        "ResourceGatherNd",
        "ReverseV2",
        "Rint",
        "Roll",
        "Round",
        "Select",
        "SelectV2",
        "Sign",
        "Slice",
        "SpaceToBatchND",
        "SpaceToDepth",
        "Split",
        "SplitV",
        "Squeeze",
        "StopGradient",
        "StridedSlice",
        "TensorListFromTensor",
        "TensorListGetItem",
        "TensorListStack",
        "TensorScatterUpdate",
        "Tile",
        "TopKV2",
        "Transpose",
        "Unpack",
        "Where",
        "ZerosLike",
    ]
)
"""Operations that choose or copy numbers: their results are not rounded."""

SUMS = frozenset(
    [
        "AvgPool",
        "AvgPool3D",
        "BatchMatMul",
        "BatchMatMulV2",
        "BatchMatMulV3",
        "Conv",
        "Conv2D",
        "Conv2DBackpropInput",
        "Conv3D",
        "Conv3DBackpropInputV2",
        "Cumsum",
        "DepthwiseConv2dNative",
        "Einsum",
        "FusedBatchNorm",
        "FusedBatchNormV2",
        "FusedBatchNormV3",
        "LogSoftmax",
        "MatMul",
        "Mean",
        "Prod",
        "Softmax",
        "SparseTensorDenseMatMul",
        "Sum",
        "TensorScatterAdd",
        "UnsortedSegmentSum",
        "XlaConvV2",
        "XlaDotV2",
    ]
)
"""Operations whose rounding is that of a sum."""

FAST_PATH = "TFE_Py_FastPathExecute"
OTHERS = ("TFE_Py_Execute", "TFE_Py_ExecuteCancelable")


def context(move: "Callable[[Any, bool], Any]") -> "Any":
    """None for a TensorFlow without eager execution."""
    try:
        import tensorflow
        from tensorflow.python import pywrap_tfe as extension
        from tensorflow.python.eager.context import Context

        as_eager = tensorflow.config.run_functions_eagerly
    except (ImportError, AttributeError):
        return None
    return _changed(tensorflow, extension, Context, as_eager, move)


@contextlib.contextmanager
def _changed(
    tensorflow: "Any",
    extension: "Any",
    context_type: "Any",
    as_eager: "Any",
    move: "Callable[[Any, bool], Any]",
) -> "Iterator[None]":
    inside: "list[Any]" = []

    def one(result: "Any", is_sum: bool) -> "Any":
        if not hasattr(result, "numpy") or not getattr(result.dtype, "is_floating", False):
            return result
        array = result.numpy().astype(numpy.float64)
        with tensorflow.device(result.device):
            return tensorflow.constant(move(array, is_sum), dtype=result.dtype)

    def changed(operation: "Any", result: "Any") -> "Any":
        name = operation.decode() if isinstance(operation, bytes) else operation
        if name in EXACT or inside:
            return result
        # Making the changed tensor is no operation of the program.
        inside.append(name)
        try:
            # A function that is not run operation by operation contains sums.
            is_sum = name in SUMS or name.startswith("__")
            if isinstance(result, (list, tuple)):
                return type(result)(one(each, is_sum) for each in result)
            return one(result, is_sum)
        finally:
            inside.pop()

    def watching(execute: "Any", place: int) -> "Any":
        def executing(*arguments: "Any") -> "Any":
            result = execute(*arguments)
            # Before TensorFlow 2.3, a handle and a device come before the operation.
            old = place == 1 and not isinstance(arguments[0], context_type)
            return changed(arguments[2 if old else place], result)

        return executing

    names = [(FAST_PATH, 1)] + [(name, 2) for name in OTHERS if hasattr(extension, name)]
    before = {name: getattr(extension, name) for name, _ in names}
    was_eager = tensorflow.config.functions_run_eagerly()
    for name, place in names:
        setattr(extension, name, watching(before[name], place))
    as_eager(True)
    try:
        yield
    finally:
        as_eager(was_eager)
        for name, function in before.items():
            setattr(extension, name, function)
