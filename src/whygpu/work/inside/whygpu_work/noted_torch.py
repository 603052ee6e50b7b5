"""A call of a PyTorch module as it was when memory ran out, for any batch size."""

import torch

from . import trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NotedCall(torch.nn.Module):
    """The module with all its arguments; its inputs are those whose first axis is the batch.

    `devices` has the device of each tensor by its id; None if it is unknown. Such an argument is
    assumed to be on the device of the module.
    """

    def __init__(
        self, module: "Any", args: "Any", kwargs: "Any", devices: "dict[int, str | None]"
    ) -> None:
        super(NotedCall, self).__init__()
        self.module = module
        given = [each for each in trees.flat((args, kwargs), _is_tensor) if each.dim()]
        batch = given[0].shape[0]
        home = next((devices[id(each)] for each in module.parameters()), "cpu")
        self._call = (args, kwargs)
        self._scaled = [each for each in _unique(given) if each.shape[0] == batch]
        self._elsewhere = {id(each) for each in given if devices[id(each)] not in (None, home)}
        # Lengths of sequences have to stay on the CPU. A program on the CPU does not show that, nor
        # does an argument whose device is not known.
        self._perhaps = {
            id(each)
            for each in given
            if (home == "cpu" or devices[id(each)] is None) and _may_be_lengths(each)
        }
        self.examples = tuple(_rows(each) for each in self._scaled)

    def forward(self, *rows: "Any") -> "Any":
        try:
            return self._called(rows)
        except RuntimeError:
            if not self._perhaps:
                raise
        self._elsewhere |= self._perhaps
        self._perhaps = set()
        return self._called(rows)

    def _called(self, rows: "Any") -> "Any":
        scaled = {id(each): row for each, row in zip(self._scaled, rows)}

        def replaced(tensor: "Any") -> "Any":
            value = scaled.get(id(tensor))
            if value is None:
                value = _filled(tensor).to("cuda")
            return value.cpu() if id(tensor) in self._elsewhere else value

        args, kwargs = trees.replaced(self._call, _is_tensor, replaced)
        return self.module(*args, **kwargs)


def tensor(described: "dict[str, Any]") -> "Any":
    """A tensor without data, on `meta`; integers that were noted have their values."""
    dtype = getattr(torch, described["dtype"])
    if described["values"] is not None:
        made = torch.tensor(described["values"], dtype=dtype).reshape(described["shape"])
    else:
        made = torch.empty(described["shape"], dtype=dtype, device="meta")
    if described["is_parameter"]:
        return torch.nn.Parameter(made, requires_grad=described["trained"])
    return made


def _may_be_lengths(given: "Any") -> bool:
    return given.dim() == 1 and given.dtype == torch.int64 and not given.is_meta


def _rows(given: "Any") -> "Any":
    """The examples; if their values are not known, one that stands for all."""
    if not given.is_meta:
        return given
    return torch.zeros((1,) + given.shape[1:], dtype=given.dtype).expand(given.shape)


def _filled(given: "Any") -> "Any":
    return torch.zeros(given.shape, dtype=given.dtype) if given.is_meta else given


def _is_tensor(thing: "Any") -> bool:
    return isinstance(thing, torch.Tensor)


def _unique(tensors: "Any") -> "list[Any]":
    return list({id(each): each for each in tensors}.values())
