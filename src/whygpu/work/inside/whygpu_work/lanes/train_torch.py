"""Trains a PyTorch module: the loss of each step, the gradients of the first, the final weights."""

import sys
import time

import numpy

from . import host_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from ..work_torch import TorchWork
    from .recording import Writer


def record(
    work: "TorchWork", inputs: "Any", writer: "Writer", steps: int
) -> "tuple[float, Callable[[], Any], list[str]]":
    """Returns (seconds of the first step, a function that does one more step, notes)."""
    silenced = silence(work.module)
    work.prepare_training()
    wide = any(each.dtype is sys.modules["torch"].float64 for each in work.module.parameters())
    # A loss is a Python number, which has more digits than were computed.
    precision = "float64" if wide else "float32"
    first = 0.0
    for step in range(steps):
        began = time.perf_counter()
        loss = work.train_step(inputs)
        first = first or time.perf_counter() - began
        writer.tensor("loss[%d]" % (step + 1), "loss", numpy.asarray(loss, precision))
        if step == 0:
            _write(writer, "gradient", [(n, p.grad) for n, p in work.module.named_parameters()])
    _write(writer, "weight", work.module.named_parameters())
    notes = ["the loss is the mean of what the module returns"]
    if silenced:
        notes.append("dropout is switched off, because devices draw different random numbers")
    return first, lambda: work.train_step(inputs), notes


def _write(writer: "Writer", kind: str, tensors: "Iterable[tuple[str, Any]]") -> None:
    for name, tensor in tensors:
        if tensor is not None:
            array, dtype = host_arrays.on_host(tensor)
            writer.tensor("%s %s" % (kind, name), kind, array, dtype)


def silence(module: "Any") -> bool:
    """Set every rate of dropout to 0; returns whether there was one."""
    torch = sys.modules["torch"]
    found = False
    for part in module.modules():
        rate = (
            "dropout" if isinstance(part, (torch.nn.RNNBase, torch.nn.MultiheadAttention)) else "p"
        )
        named = "Drop" in type(part).__name__ or rate == "dropout"
        value = getattr(part, rate, None)
        if named and isinstance(value, (int, float)) and value > 0:
            setattr(part, rate, 0.0)
            found = True
    return found
