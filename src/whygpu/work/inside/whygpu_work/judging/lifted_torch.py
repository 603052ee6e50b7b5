"""A PyTorch module in float64, for the reference task."""

import copy

import torch

from .. import trees
from ..lanes import host_arrays, layers_torch, taps_torch, train_torch
from ..work_torch import TorchWork, call
from .float64_keras import CannotLift
from .tools_torch import TorchTools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    import numpy

    from ..lanes.recording import Writer


class LiftedTorch(object):
    def __init__(self, lane: "Any") -> None:
        try:
            self._module = copy.deepcopy(lane.model).double()
        except (RuntimeError, TypeError, ValueError) as error:
            raise CannotLift("the module cannot be copied: %s" % error)
        self._state = {key: each.clone() for key, each in self._module.state_dict().items()}
        self._inputs = _wide(lane.inputs)
        self._record_inputs = _wide(lane.record_inputs)

    def tools(self) -> "TorchTools":
        return TorchTools(torch)

    def given(self) -> "list[numpy.ndarray]":
        """The arrays that `force` passes to the module."""
        return [self.tools().to_numpy(each) for each in self.tools().flat(self._record_inputs)]

    def call(self) -> "Any":
        with torch.no_grad():
            return host_arrays.all_on_host(call(self._module, self._inputs), "output")

    def outputs(self, result: "Any") -> "Any":
        return result

    def force(self, on_step: "Callable[..., Any]") -> None:
        with taps_torch.tapped(torch, self._module, on_step), torch.no_grad():
            call(self._module, self._record_inputs)

    def train(
        self, writer: "Writer", steps: int, change: "Callable[[Any], Any] | None" = None
    ) -> None:
        def changed(tensor: "Any") -> "Any":
            if change is None or not tensor.is_floating_point():
                return tensor.clone()
            return torch.as_tensor(change(tensor.numpy()))

        self._module.load_state_dict({key: changed(each) for key, each in self._state.items()})
        inputs = trees.replaced(self._inputs, layers_torch.is_tensor, changed)
        work = TorchWork(self._module, inputs, "sgd", device="cpu")
        train_torch.record(work, inputs, writer, steps)


def _wide(inputs: "Any") -> "Any":
    return trees.replaced(
        inputs,
        layers_torch.is_tensor,
        lambda each: each.double() if each.is_floating_point() else each,
    )
