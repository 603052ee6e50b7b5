"""Records every step of a PyTorch module: the result of each submodule."""

import sys

from .. import trees
from ..work_torch import call
from . import host_arrays, taps_torch
from .layers_keras import ROOM, layer_tensor
from .taps_keras import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    import numpy

    from .recording import Writer


def rows_that_fit(module: "Any", inputs: "Any", batch: int) -> int:
    """For how many rows of the batch all steps are recorded; found by running one row."""
    import torch

    sizes: "list[int]" = []

    def on_step(
        name: str, part: "Any", compute: "Callable[[Any, Any], Any]", args: "Any", kwargs: "Any"
    ) -> "Any":
        result = compute(args, kwargs)
        sizes.extend(each.numel() * each.element_size() for each in trees.flat(result, is_tensor))
        return result

    with taps_torch.tapped(torch, module, on_step), torch.no_grad():
        call(module, first_rows(inputs, 1))
    return int(max(1, min(batch, ROOM // max(1, sum(sizes)))))


def first_rows(inputs: "Any", count: int) -> "Any":
    return trees.replaced(inputs, is_tensor, lambda each: each[:count] if each.dim() else each)


def filled(inputs: "Any", arrays: "Iterable[numpy.ndarray]") -> "Any":
    """The structure with its tensors filled from the arrays, in order."""
    import torch

    waiting = iter(arrays)
    return trees.replaced(
        inputs, is_tensor, lambda each: torch.as_tensor(next(waiting)).to(each.dtype)
    )


def is_tensor(thing: "Any") -> bool:
    return isinstance(thing, sys.modules["torch"].Tensor)


def record(module: "Any", inputs: "Any", writer: "Writer") -> None:
    import torch

    def on_step(
        name: str, part: "Any", compute: "Callable[[Any, Any], Any]", args: "Any", kwargs: "Any"
    ) -> "Any":
        before = taps.code_before
        result = compute(args, kwargs)
        _write(writer, name, part, before, result)
        return result

    with taps_torch.tapped(torch, module, on_step) as taps, torch.no_grad():
        call(module, inputs)


def _write(writer: "Writer", name: str, part: "Any", code_before: bool, result: "Any") -> None:
    names = []
    for i, tensor in enumerate(trees.flat(result, is_tensor)):
        inner = layer_tensor(name if i == 0 else "%s[%d]" % (name, i))
        array, dtype = host_arrays.on_host(tensor)
        writer.tensor(inner, "layer", array, dtype)
        names.append(inner)
    # The weights of a container belong to the steps inside.
    kept = {} if taps_torch.is_container(part) else part.state_dict()
    weights = [host_arrays.plain(each) for each in kept.values()]
    writer.step(
        name,
        type(part).__name__,
        names,
        taps_torch.precision(part, result),
        taps_torch.settings(part),
        digest(weights),
        code_before,
    )
