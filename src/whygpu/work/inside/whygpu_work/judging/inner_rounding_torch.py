"""Changes the result of each operation of PyTorch; see inner_rounding.py."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

EXACT = frozenset(
    [
        "_to_copy",
        "clone",
        "copy",
        "copy_",
        "lift_fresh",
        "relu",
        "relu_",
        "neg",
        "abs",
        "sign",
        "round",
        "floor",
        "ceil",
        "trunc",
        "arange",
        "full",
        "full_like",
        "ones",
        "ones_like",
        "zeros",
        "zeros_like",
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "scalar_tensor",
        "fill",
        "fill_",
        "zero_",
        "eye",
        "linspace",
        "cat",
        "stack",
        "index",
        "index_select",
        "gather",
        "scatter",
        "where",
        "masked_fill",
        "masked_fill_",
        "maximum",
        "minimum",
        "clamp",
        "clamp_min",
        "clamp_max",
        "max",
        "min",
        "amax",
        "amin",
        "sort",
        "topk",
        "flip",
        "roll",
        "repeat",
        "triu",
        "tril",
        "embedding",
        "constant_pad_nd",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "_local_scalar_dense",
        "one_hot",
    ]
)
"""Operations that choose or copy numbers: their results are not rounded."""

SUMS = frozenset(
    [
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "addmv",
        "mv",
        "dot",
        "convolution",
        "sum",
        "mean",
        "var",
        "std",
        "var_mean",
        "norm",
        "linalg_vector_norm",
        "cumsum",
        "prod",
        "logsumexp",
        "_softmax",
        "_log_softmax",
        "native_layer_norm",
        "native_batch_norm",
        "native_group_norm",
    ]
)
"""Operations whose rounding is that of a sum."""


def context(move: "Callable[[Any, bool], Any]") -> "Any":
    """None before PyTorch 1.13, where Python code does not see the operations."""
    try:
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return None

    class Rounding(TorchDispatchMode):
        def __torch_dispatch__(
            self, function: "Any", types: "Any", arguments: "Any" = (), options: "Any" = None
        ) -> "Any":
            result = function(*arguments, **(options or {}))
            name = function._schema.name.partition("::")[2]
            if name in EXACT:
                return result
            is_sum = name in SUMS
            kinds = function._schema.returns
            if isinstance(result, torch.Tensor) and len(kinds) == 1:
                return one(result, kinds[0].alias_info, is_sum)
            if isinstance(result, tuple) and len(kinds) == len(result):
                return tuple(
                    one(each, kind.alias_info, is_sum) for each, kind in zip(result, kinds)
                )
            return result

    def one(result: "Any", alias: "Any", is_sum: bool) -> "Any":
        is_view = alias is not None and not alias.is_write
        is_real = isinstance(result, torch.Tensor) and result.is_floating_point()
        if is_view or not is_real or result.is_meta:
            return result
        array = result.detach().cpu().numpy()
        made = torch.as_tensor(move(array, is_sum), dtype=result.dtype, device=result.device)
        # In place: its strides matter to what follows, and what is written to is changed.
        result.detach().copy_(made.reshape(result.shape))
        return result

    return Rounding()
