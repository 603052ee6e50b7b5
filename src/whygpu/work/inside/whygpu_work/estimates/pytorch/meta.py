"""Moves a module's weights to `meta`: they lose their data and keep shape, type and ties."""

import weakref

import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def on_meta(module: "Any", known: "dict[int, Any] | None" = None) -> "list[Any]":
    """Put all weights and buffers of a module where they have no data; what it has then.

    `known` is filled for `without_data`.
    """
    known = {} if known is None else known
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = without_data(tensor, known)
        if isinstance(part, torch.nn.RNNBase):
            _flatten(part, known)
    return _weights(module)


def without_data(tensor: "Any", known: "dict[int, Any]") -> "Any":
    """The tensor on `meta`; the same one each time, as remembered in `known`."""
    if id(tensor) not in known:
        like = tensor.detach().to("meta")
        if isinstance(tensor, torch.nn.Parameter):
            like = torch.nn.Parameter(like, requires_grad=tensor.requires_grad)
        # The tensor is kept as well, so that its id is not used again.
        known[id(tensor)] = (like, tensor)
        known[id(like)] = (like, like)
    return known[id(tensor)][0]


def _flatten(layer: "Any", known: "dict[int, Any]") -> None:
    """Moving a recurrent layer to a GPU puts its weights into one piece of memory."""
    names = layer._flat_weights_names
    weights = [layer._parameters[name] for name in names]
    if len({weight.dtype for weight in weights}) > 1:
        return
    whole = torch.empty(
        sum(weight.numel() for weight in weights), dtype=weights[0].dtype, device="meta"
    )
    place = 0
    for name, weight in zip(names, weights):
        part = whole[place : place + weight.numel()].view(weight.shape)
        layer._parameters[name] = torch.nn.Parameter(part, requires_grad=weight.requires_grad)
        known[id(layer._parameters[name])] = (layer._parameters[name],) * 2
        place += weight.numel()
    layer._flat_weights = [layer._parameters[name] for name in names]
    layer._flat_weight_refs = [weakref.ref(weight) for weight in layer._flat_weights]


def _weights(module: "Any") -> "list[Any]":
    return [*module.parameters(), *module.buffers()]
