"""Functions that allocate differently on a GPU than on the `meta` device.

Each function here allocates, keeps and frees what PyTorch's CUDA path does: attention without a
matrix of scores, a transformer's layer in one piece, dropout with a mask of one byte an element.
"""

import torch

from .cudnn import recurrent
from .record import working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

FLASH_HEAD_SIZE = 256
"""The largest size of a head for which there is a flash attention kernel."""
HALVES = (torch.float16, torch.bfloat16)


def dropout(input: "Any", p: float = 0.5, train: bool = True) -> "Any":
    if not train or p == 0:
        return input
    return torch.native_dropout(input, p, True)[0]


def rms_norm(
    input: "Any",
    normalized_shape: "Sequence[int]",
    weight: "Any" = None,
    eps: "float | None" = None,
) -> "Any":
    """One kernel on a GPU, several steps on `meta`; it keeps one number for each row."""
    return _RmsNorm.apply(input, weight, len(normalized_shape))


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(context: "Any", input: "Any", weight: "Any", dimensions: int) -> "Any":
        rows = input.shape[: input.dim() - dimensions]
        context.save_for_backward(input, weight, input.new_empty(rows, dtype=torch.float32))
        return torch.empty_like(input)

    @staticmethod
    def backward(context: "Any", gradient: "Any") -> "tuple[Any, Any, Any]":
        input, weight, _ = context.saved_tensors
        of_weight = None if weight is None else torch.empty_like(weight)
        return torch.empty_like(input), of_weight, None


def attention(
    query: "Any",
    key: "Any",
    value: "Any",
    attn_mask: "Any" = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: "float | None" = None,
    enable_gqa: bool = False,
) -> "Any":
    if not _has_fused_kernel(query, value, attn_mask):
        return _attention_by_scores(query, key, value, attn_mask, dropout_p, is_causal)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.empty_like(attn_mask, dtype=query.dtype)
    return _FusedAttention.apply(query, key, value, attn_mask)


def _has_fused_kernel(query: "Any", value: "Any", mask: "Any") -> bool:
    """Whether flash or memory-efficient attention accepts these, by PyTorch's own conditions."""
    if query.dim() != 4 or query.dtype == torch.float64:
        return False
    if mask is not None and mask.requires_grad:
        return False
    sizes = (query.shape[-1], value.shape[-1])
    half = query.dtype in HALVES
    settings = torch.backends.cuda
    flash = half and mask is None and max(sizes) <= FLASH_HEAD_SIZE and sizes[0] == sizes[1]
    if flash and settings.flash_sdp_enabled():
        return True
    aligned = all(size % (8 if half else 4) == 0 for size in sizes)
    return aligned and settings.mem_efficient_sdp_enabled()


def _attention_by_scores(
    query: "Any", key: "Any", value: "Any", mask: "Any", dropout_p: float, is_causal: bool
) -> "Any":
    """Attention with the whole matrix of scores, as PyTorch does it if no kernel fits."""
    if is_causal:
        shape = (query.shape[-2], key.shape[-2])
        mask = torch.empty(shape, dtype=torch.bool, device=query.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.empty_like(mask, dtype=query.dtype)
    if key.dim() == 4 and key.shape[-3] not in (1, query.shape[-3]):
        key, value = (_for_every_head(each, query.shape[-3]) for each in (key, value))
    scores = torch.matmul(query * 1.0, (key * 1.0).transpose(-2, -1))
    if mask is not None:
        scores = scores + mask
    weights = dropout(torch.softmax(scores, -1), dropout_p, dropout_p > 0)
    return torch.matmul(weights, value)


def _for_every_head(tensor: "Any", heads: int) -> "Any":
    return tensor.repeat_interleave(heads // tensor.shape[-3], -3, output_size=heads)


class _FusedAttention(torch.autograd.Function):
    @staticmethod
    def forward(context: "Any", query: "Any", key: "Any", value: "Any", mask: "Any") -> "Any":
        batch, heads, steps = query.shape[:3]
        # The kernels write [batch, step, head, number] and show it as [batch, head, step, number].
        result = query.new_empty((batch, steps, heads, value.shape[-1])).transpose(1, 2)
        sums = query.new_empty((batch, heads, steps), dtype=torch.float32)
        context.save_for_backward(query, key, value, mask, result, sums)
        return result

    @staticmethod
    def backward(context: "Any", gradient: "Any") -> "tuple[Any, ...]":
        query, key, value, _, _, sums = context.saved_tensors
        gradients = [torch.empty_like(each) for each in (query, key, value)]
        # The gradient of the query is accumulated in 32 bits.
        working((sums.numel() + query.numel()) * sums.element_size())
        return (*gradients, None)


def encoder_layer(src: "Any", size: int, heads: int, *rest: "Any") -> "Any":
    """A transformer encoder layer at inference, which is one function on CUDA."""
    projections, (use_gelu, norm_first, epsilon) = rest[:4], rest[4:7]
    first_norm, second_norm, widen, narrow = (rest[at : at + 2] for at in (7, 9, 11, 13))
    linear = torch.nn.functional.linear

    def normalised(x: "Any", weights: "Any") -> "Any":
        return torch.nn.functional.layer_norm(x, (size,), *weights, epsilon)

    x = normalised(src, first_norm) if norm_first else src
    x = self_attention(x, x, x, size, heads, *projections, need_weights=False)[0].add_(src)
    x = x if norm_first else normalised(x, first_norm)
    wide = linear(normalised(x, second_norm) if norm_first else x, *widen)
    wide = torch.nn.functional.gelu(wide) if use_gelu else wide.relu_()
    x = linear(wide, *narrow).add_(x)
    return x if norm_first else normalised(x, second_norm)


def self_attention(
    query: "Any",
    key: "Any",
    value: "Any",
    size: int,
    heads: int,
    *projections: "Any",
    **options: "Any",
) -> "tuple[Any, Any]":
    """Attention with its projections at inference, which is one function on CUDA."""
    into_three, into_three_bias, back, back_bias = projections[:4]
    need_weights, average = _wants_weights(projections[4:], options)
    linear = torch.nn.functional.linear
    batch, steps = query.shape[:2]
    parts = linear(query, into_three, into_three_bias).chunk(3, -1)
    split = [part.view(batch, steps, heads, -1).transpose(1, 2) for part in parts]
    weights = None
    if need_weights:
        weights = torch.softmax(torch.matmul(split[0], split[1].transpose(-2, -1)), -1)
        mixed = torch.matmul(weights, split[2])
        weights = weights.mean(1) if average else weights
    else:
        mixed = attention(*split)
    mixed = mixed.transpose(1, 2).reshape(batch, steps, size)
    return linear(mixed, back, back_bias), weights


def _wants_weights(rest: "Any", options: "dict[str, Any]") -> "tuple[bool, bool]":
    """PyTorch gives (mask, need_weights, average_attn_weights, mask_type), by place or name."""
    given = dict(zip(("mask", "need_weights", "average_attn_weights"), rest), **options)
    return given.get("need_weights", True), given.get("average_attn_weights", True)


def _existing(replacements: "Any") -> "dict[Any, Any]":
    """The replacements by function, without those that this release does not have."""
    return {
        getattr(owner, name): replacement
        for owner, name, replacement in replacements
        if hasattr(owner, name)
    }


ON_CUDA = _existing(
    (
        (torch, "dropout", dropout),
        (torch, "rms_norm", rms_norm),
        (torch._C._nn, "scaled_dot_product_attention", attention),
        (torch, "_transformer_encoder_layer_fwd", encoder_layer),
        (torch, "_native_multi_head_attention", self_attention),
        (torch, "lstm", recurrent("LSTM")),
        (torch, "gru", recurrent("GRU")),
        (torch, "rnn_tanh", recurrent("RNN")),
        (torch, "rnn_relu", recurrent("RNN")),
    )
)
