"""Automatic mixed precision for tensors without data: what `torch.autocast("cuda")` would cast.

PyTorch casts by device, and knows no rule for the `meta` device; these are its rules for CUDA.
"""

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_LOWER = """
    addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d convolution einsum gru gru_cell linear lstm
    lstm_cell matmul mm mv prelu rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    scaled_dot_product_attention
"""
_FULL = """
    acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity
    cross_entropy_loss cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss
    huber_loss kl_div l1_loss layer_norm log log10 log1p log2 log_softmax margin_ranking_loss
    mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd norm pdist
    poisson_nll_loss pow prod reciprocal renorm rsqrt sinh smooth_l1_loss soft_margin_loss softmax
    softplus sum tan triplet_margin_loss
"""
_METHODS = {"__matmul__": "lower", "__rmatmul__": "lower", "__pow__": "full", "__rpow__": "full"}


class Casts:
    """The casts of an autocast region, with the copies of weights that it keeps until its end."""

    def __init__(self) -> None:
        self._copies: "dict[int, tuple[Any, Any]]" = {}

    def forget(self) -> None:
        self._copies.clear()

    def apply(
        self, function: "Callable[..., Any]", arguments: "Any", options: "dict[str, Any]"
    ) -> "tuple[Any, dict[str, Any]]":
        rule = _RULES.get(function)
        # Without an argument, both are about CUDA, in old releases and new.
        if rule is None or not torch.is_autocast_enabled():
            return arguments, options
        dtype = torch.float32 if rule == "full" else torch.get_autocast_gpu_dtype()
        cast = [self._cast(each, dtype) for each in arguments]
        return tuple(cast), {name: self._cast(each, dtype) for name, each in options.items()}

    def _cast(self, value: "Any", dtype: "Any") -> "Any":
        if type(value) in (list, tuple):
            return type(value)([self._cast(each, dtype) for each in value])
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        if value.dtype in (dtype, torch.float64) or value.device.type != "meta":
            return value
        if not (value.is_leaf and value.requires_grad and dtype != torch.float32):
            return value.to(dtype)
        if id(value) not in self._copies:
            # The weight is kept as well, so that its id is not used again.
            self._copies[id(value)] = (value, value.to(dtype))
        return self._copies[id(value)][1]


def _rules() -> "dict[Any, str]":
    owners = (torch, torch.Tensor, torch._C._nn, torch.nn.functional, torch._VF)
    rules = {}
    for names, rule in ((_LOWER, "lower"), (_FULL, "full")):
        for name in names.split():
            for owner in owners:
                function = getattr(owner, name, None)
                if function is not None:
                    rules[function] = rule
    rules.update((getattr(torch.Tensor, name), rule) for name, rule in _METHODS.items())
    return rules


_RULES = _rules()
