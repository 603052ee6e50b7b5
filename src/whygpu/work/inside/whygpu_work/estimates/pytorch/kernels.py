"""Memory that CUDA kernels allocate in addition to their results.

The `meta` device knows the shape of every result. It does not know that cuDNN needs its tensors in
one layout, or that it needs workspace.
"""

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

aten = torch.ops.aten

CUBLAS = frozenset(
    getattr(aten, name).default for name in ("mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot")
)
CUBLAS_LT = frozenset((aten.addmm.default,))
"""Products with a bias to add."""
CUBLAS_LT_WORKSPACE = 1 << 20


def cublas_workspace(gpu: "tuple[int, int] | None") -> int:
    """The workspace that PyTorch gives cuBLAS for each thread, by the GPU's compute capability."""
    return 32 << 20 if gpu is None or gpu >= (9, 0) else (8 << 20) + (128 << 10)


def _convolution(
    function: "Callable[..., Any]",
    arguments: "Any",
    options: "dict[str, Any]",
    gpu: "tuple[int, int] | None",
) -> "tuple[Any, list[int]]":
    tensor, weight = arguments[:2]
    layout = _layout(tensor, weight)
    result = function(*arguments, **options)
    result = torch.empty_like(result, memory_format=layout)
    copies = [_copy(each, layout) for each in (tensor, weight)]
    return result, [*copies, _transposing(layout, gpu, weight, tensor, result)]


def _convolution_backward(
    function: "Callable[..., Any]",
    arguments: "Any",
    options: "dict[str, Any]",
    gpu: "tuple[int, int] | None",
) -> "tuple[Any, list[int]]":
    gradient, tensor, weight = arguments[:3]
    layout = _layout(tensor, weight)
    result = list(function(*arguments, **options))
    for place in (0, 1):
        if result[place] is not None:
            result[place] = torch.empty_like(result[place], memory_format=layout)
    copies = [_copy(each, layout) for each in (gradient, tensor, weight)]
    return tuple(result), [*copies, _transposing(layout, gpu, weight, tensor, gradient)]


def _layout(tensor: "Any", weight: "Any") -> "Any":
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    wanted = formats.get(tensor.dim())
    if wanted is not None and (_looks_channels_last(tensor) or _looks_channels_last(weight)):
        return wanted
    return torch.contiguous_format


def _looks_channels_last(tensor: "Any") -> bool:
    """Whether PyTorch treats the strides as channels-last."""
    size, stride = tensor.shape, tensor.stride()
    if stride[1] == 0:
        return False
    least = 0
    for dimension in [1, *range(tensor.dim() - 1, 1, -1), 0]:
        if size[dimension] == 0 or stride[dimension] < least:
            return False
        if dimension == 0 and least == stride[1]:
            return False
        least = stride[dimension] * max(size[dimension], 1)
    return True


def _transposing(
    layout: "Any", gpu: "tuple[int, int] | None", weight: "Any", *tensors: "Any"
) -> int:
    """Bytes for channels-last copies, which is the layout that tensor cores need.

    cuDNN makes them for itself where PyTorch has them in the other layout. A kernel of one point is
    a plain product, which takes any layout, and one for each channel does without tensor cores.
    """
    points = weight.numel() // (weight.shape[0] * weight.shape[1])
    if layout != torch.contiguous_format or points == 1 or weight.shape[1] == 1:
        return 0
    if not _on_tensor_cores(weight.dtype, gpu):
        return 0
    return sum(_bytes(tensor) for tensor in (weight, *tensors))


def _on_tensor_cores(dtype: "Any", gpu: "tuple[int, int] | None") -> bool:
    if dtype == torch.float32:
        return torch.backends.cudnn.allow_tf32 and (gpu is None or gpu >= (8, 0))
    return dtype in (torch.float16, torch.bfloat16) and (gpu is None or gpu >= (7, 0))


def _copy(tensor: "Any", layout: "Any") -> int:
    """The bytes of a copy in another layout; 0 if the tensor has that layout already."""
    if tensor.is_contiguous(memory_format=layout):
        return 0
    return _bytes(tensor)


def _bytes(tensor: "Any") -> int:
    return tensor.numel() * tensor.element_size()


BY_FUNCTION = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
}
