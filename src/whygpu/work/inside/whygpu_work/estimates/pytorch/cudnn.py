"""Recurrent layers as cuDNN runs them, for tensors without data.

What cuDNN keeps for the backward pass and needs to work in is not documented. The figures here are
from a grid of some hundred layers, measured on an NVIDIA H200, driver 580.159.04, with cuDNN 9.19.
"""

import torch

from .record import working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RESERVED = {"LSTM": 5, "GRU": 6, "RNN": 1}
"""Numbers kept for the backward pass, for each step, example and hidden unit of a layer."""
FOR_DROPOUT = 2
"""More of them, between two layers."""
SMALL = {"LSTM": (192, 128), "GRU": (192, 128), "RNN": (384, 256)}
"""Hidden units up to which cuDNN uses an algorithm for small layers, forward and backward."""
OF_SMALL = {"LSTM": (16, 16), "GRU": (12, 14), "RNN": (4, 9)}
"""Extra numbers of workspace for it, at inference and in training, in 32 bits."""
FIXED = 8 << 20
"""Bytes of workspace for each layer and direction."""


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
    shape = _Shape(kind, layers, bidirectional, dropout, train, len(states))
    if batch_first:
        input = input.transpose(0, 1)
    output, *last = _Recurrent.apply(shape, input, *states, *weights)
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
    shape = _Shape(kind, layers, bidirectional, dropout, train, len(states))
    return _Recurrent.apply(shape, data, *states, *weights)


class _Shape:
    def __init__(
        self,
        kind: str,
        layers: int,
        bidirectional: bool,
        dropout: float,
        train: bool,
        states: "Any",
    ) -> None:
        self.kind = kind
        self.layers = layers
        self.directions = 2 if bidirectional else 1
        self.dropout = dropout and train
        self.train = train
        self.states = states

    def reserve(self, input: "Any", hidden: int) -> int:
        """The bytes kept for the backward pass: of each layer, and between layers."""
        between = 1 + (FOR_DROPOUT if self.dropout else 0)
        numbers = RESERVED[self.kind] * self.layers + between * (self.layers - 1)
        return _rows(input) * numbers * hidden * self.directions * input.element_size()

    def workspace(self, input: "Any", hidden: int, weights: "Any", forward: bool) -> int:
        """The bytes of workspace of a pass."""
        size, gates, both = input.shape[-1], GATES[self.kind], self.directions == 2
        numbers = self.directions * (gates + 1) * hidden + size + (4 * hidden if both else 0)
        if self.kind == "LSTM":
            numbers = max(numbers, 3 * self.directions * (hidden + size))
        if self.train and self.kind == "GRU":
            numbers += size
        if self.train and self.kind == "RNN":
            numbers += 2 * hidden + size
        if input.element_size() == 4 and hidden <= SMALL[self.kind][0 if forward else 1]:
            numbers += OF_SMALL[self.kind][1 if self.train else 0] * hidden
        numbers = _rows(input) * numbers + weights.numel()
        return numbers * input.element_size() + FIXED * self.layers * self.directions


class _Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(
        context: "Any", shape: "_Shape", input: "Any", *tensors: "Any"
    ) -> "tuple[Any, ...]":
        states, weights = tensors[: shape.states], tensors[shape.states :]
        hidden = states[0].shape[-1]
        input = input.contiguous()
        packed = _in_one_piece(weights)
        output = input.new_empty((*input.shape[:-1], hidden * shape.directions))
        last = [torch.empty_like(state) for state in states]
        size = shape.reserve(input, hidden) if shape.train else 0
        reserve = torch.empty(size, dtype=torch.uint8, device=input.device)
        working(shape.workspace(input, hidden, packed, True))
        context.shape = shape
        context.save_for_backward(input, packed, output, reserve, *tensors)
        return (output, *last)

    @staticmethod
    def backward(context: "Any", *gradients: "Any") -> "tuple[Any, ...]":
        input, packed, _, _, *tensors = context.saved_tensors
        states, weights = tensors[: context.shape.states], tensors[context.shape.states :]
        of_input = torch.empty_like(input)
        of_states = [torch.empty_like(state) for state in states]
        of_weights = torch.empty_like(packed)
        working(context.shape.workspace(input, states[0].shape[-1], packed, False))
        parts, place = [], 0
        for weight in weights:
            parts.append(of_weights[place : place + weight.numel()].view(weight.shape))
            place += weight.numel()
        return (None, of_input, *of_states, *parts)


def _in_one_piece(weights: "Any") -> "Any":
    """The weights in one piece, as cuDNN expects them: as they are if possible, else a copy."""
    total = sum(weight.numel() for weight in weights)
    if len({weight.untyped_storage()._cdata for weight in weights}) == 1:
        return weights[0].as_strided((total,), (1,))
    return weights[0].new_empty(total)


def _rows(input: "Any") -> int:
    return input.numel() // input.shape[-1]
