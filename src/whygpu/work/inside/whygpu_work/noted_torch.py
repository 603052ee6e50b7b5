"""A call of a PyTorch module as it was when memory ran out, to be made with any batch."""

import torch


class NotedCall(torch.nn.Module):
    """The module with all its arguments; it takes those whose first axis is the batch."""

    def __init__(self, module, args, kwargs, devices):
        super(NotedCall, self).__init__()
        self.module = module
        given = [each for each in _tensors((args, kwargs)) if each.dim()]
        batch = given[0].shape[0]
        home = next((devices[id(each)] for each in module.parameters()), "cpu")
        self._call = (args, kwargs)
        self._scaled = [each for each in _unique(given) if each.shape[0] == batch]
        self._elsewhere = {id(each) for each in given if devices[id(each)] != home}
        # Of a program on the CPU, nothing shows that the lengths of sequences have to stay there.
        self._perhaps = {id(each) for each in given if home == "cpu" and _may_be_lengths(each)}
        self.examples = tuple(_row(each) for each in self._scaled)

    def forward(self, *rows):
        try:
            return self._called(rows)
        except RuntimeError:
            if not self._perhaps:
                raise
        self._elsewhere |= self._perhaps
        self._perhaps = set()
        return self._called(rows)

    def _called(self, rows):
        scaled = {id(each): row for each, row in zip(self._scaled, rows)}

        def replaced(tensor):
            value = scaled.get(id(tensor))
            if value is None:
                value = _filled(tensor).to("cuda")
            return value.cpu() if id(tensor) in self._elsewhere else value

        args, kwargs = _mapped(self._call, replaced)
        return self.module(*args, **kwargs)


def tensor(described):
    """Without data, on `meta`; whole numbers that were noted have their values."""
    dtype = getattr(torch, described["dtype"])
    if described["values"] is not None:
        made = torch.tensor(described["values"], dtype=dtype).reshape(described["shape"])
    else:
        made = torch.empty(described["shape"], dtype=dtype, device="meta")
    if described["is_parameter"]:
        return torch.nn.Parameter(made, requires_grad=described["trained"])
    return made


def _may_be_lengths(given):
    return given.dim() == 1 and given.dtype == torch.int64 and not given.is_meta


def _row(given):
    """One example, or all where their values are known."""
    return torch.zeros((1,) + given.shape[1:], dtype=given.dtype) if given.is_meta else given


def _filled(given):
    return torch.zeros(given.shape, dtype=given.dtype) if given.is_meta else given


def _tensors(tree):
    found = []
    _mapped(tree, found.append)
    return found


def _unique(tensors):
    return list({id(each): each for each in tensors}.values())


def _mapped(tree, function):
    """The same structure, with every tensor replaced."""
    if isinstance(tree, torch.Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: _mapped(each, function) for key, each in tree.items()}
    if hasattr(tree, "_fields"):
        return type(tree)(*[_mapped(each, function) for each in tree])
    if isinstance(tree, (list, tuple)):
        return type(tree)([_mapped(each, function) for each in tree])
    return tree
