"""Recurrent layers as cuDNN runs them, for tensors without data."""

import torch

from ..cudnn_recurrent import Recurrent
from .record import working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def recurrent(kind: str) -> "Callable[..., Any]":
    """The function behind torch.nn.LSTM and its kin, with PyTorch's two ways to call it."""

    def layer(input: "Any", *rest: "Any") -> "Any":
        padded = isinstance(rest[2], bool)
        return _padded(kind, input, *rest) if padded else _packed(kind, input, *rest)

    return layer


def _padded(
    kind: str,
    input: "Any",
    hidden: "Any",
    weights: "Any",
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> "tuple[Any, ...]":
    states = hidden if kind == "LSTM" else (hidden,)
    shape = _shape(kind, states, layers, dropout, train, bidirectional)
    if batch_first:
        input = input.transpose(0, 1)
    output, *last = _OfCudnn.apply(shape, len(states), input, *states, *weights)
    return (output.transpose(0, 1) if batch_first else output, *last)


def _packed(
    kind: str,
    data: "Any",
    batch_sizes: "Any",
    hidden: "Any",
    weights: "Any",
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> "Any":
    states = hidden if kind == "LSTM" else (hidden,)
    shape = _shape(kind, states, layers, dropout, train, bidirectional)
    return _OfCudnn.apply(shape, len(states), data, *states, *weights)


def _shape(
    kind: str, states: "Any", layers: int, dropout: float, train: bool, bidirectional: bool
) -> "Recurrent":
    hidden = states[0].shape[-1]
    return Recurrent(kind, hidden, layers, 2 if bidirectional else 1, bool(dropout), train)


class _OfCudnn(torch.autograd.Function):
    @staticmethod
    def forward(
        context: "Any", shape: "Recurrent", count: int, input: "Any", *tensors: "Any"
    ) -> "tuple[Any, ...]":
        states, weights = tensors[:count], tensors[count:]
        input = input.contiguous()
        packed = _in_one_piece(weights)
        output = input.new_empty((*input.shape[:-1], shape.hidden * shape.directions))
        last = [torch.empty_like(state) for state in states]
        size = shape.reserve(_rows(input), input.element_size()) if shape.train else 0
        reserve = torch.empty(size, dtype=torch.uint8, device=input.device)
        working(_workspace(shape, input, packed, forward=True))
        context.shape, context.count = shape, count
        context.save_for_backward(input, packed, output, reserve, *tensors)
        return (output, *last)

    @staticmethod
    def backward(context: "Any", *gradients: "Any") -> "tuple[Any, ...]":
        input, packed, _, _, *tensors = context.saved_tensors
        states, weights = tensors[: context.count], tensors[context.count :]
        of_input = torch.empty_like(input)
        of_states = [torch.empty_like(state) for state in states]
        of_weights = torch.empty_like(packed)
        working(_workspace(context.shape, input, packed, forward=False))
        parts, place = [], 0
        for weight in weights:
            parts.append(of_weights[place : place + weight.numel()].view(weight.shape))
            place += weight.numel()
        return (None, None, of_input, *of_states, *parts)


def _workspace(shape: "Recurrent", input: "Any", packed: "Any", forward: bool) -> int:
    return shape.workspace(
        _rows(input), input.shape[-1], packed.numel(), input.element_size(), forward
    )


def _in_one_piece(weights: "Any") -> "Any":
    """The weights in one piece, as cuDNN expects them: as they are if possible, else a copy."""
    total = sum(weight.numel() for weight in weights)
    if len({weight.untyped_storage()._cdata for weight in weights}) == 1:
        return weights[0].as_strided((total,), (1,))
    return weights[0].new_empty(total)


def _rows(input: "Any") -> int:
    return input.numel() // input.shape[-1]
