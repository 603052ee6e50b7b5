"""A PyTorch module in a lane: its outputs, every submodule's, its training."""

from .. import trees
from ..loading import Unusable
from ..work_torch import TorchWork, moved
from . import chosen_inputs, host_arrays, layers_torch, sharing, train_torch
from .devices import CannotRun
from .work import LaneWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .recording import Writer
    from .sharing import Shared

DEFAULT_BATCH = 4


class TorchLane(LaneWork):
    kind = "torch"
    backend = "torch"

    def __init__(
        self, module: "Any", request: "dict[str, Any]", shared: "Shared", examples: "Any" = None
    ) -> None:
        if request["backend"] is not None:
            raise CannotRun("it is a PyTorch module, which no Keras backend changes")
        self.model = module
        given = _given(module, request)
        if given is None and examples is not None:
            given = examples if isinstance(examples, (tuple, list, dict)) else (examples,)
        shapes = None if request["inputs"] is not None else request["shapes"]
        self._work = TorchWork(module, given, "sgd", shapes, seed=request["seed"])
        self.weights_set = self._share_weights(shared, request["take_weights"])
        self._work.prepare_inference()
        self.inputs = self._share_inputs(shared, request["batch"], given)
        tensors = trees.flat(self.inputs, layers_torch.is_tensor)
        if not tensors:
            raise Unusable("there is no tensor among the inputs of the module")
        self.items = tensors[0].shape[0] if tensors[0].dim() else 1
        self.rows = layers_torch.rows_that_fit(module, self._on_device(), self.items)

    def _share_weights(self, shared: "Shared", take_weights: bool) -> bool:
        import torch

        state = [
            (name, each)
            for name, each in self.model.state_dict().items()
            if isinstance(each, torch.Tensor)
        ]
        names = [name for name, _ in state]
        own = [host_arrays.plain(each) for _, each in state]
        trained = {name for name, _ in self.model.named_parameters()}
        trainable = [name in trained for name in names]
        given = sharing.weights_for(shared, names, own, trainable, take_weights)
        if given is None:
            return False
        with torch.no_grad():
            for (_, each), array in zip(state, given):
                each.copy_(torch.as_tensor(array))
        return True

    def _share_inputs(self, shared: "Shared", batch: "int | None", given: "Any") -> "Any":
        """Inputs in main memory, with the same numbers in every lane."""
        rows = [len(each) for each in trees.flat(given, layers_torch.is_tensor) if each.dim()]
        made = moved(self._work.inputs(batch or (rows[0] if rows else DEFAULT_BATCH)), "cpu")
        own = [host_arrays.plain(each) for each in trees.flat(made, layers_torch.is_tensor)]
        left = shared.bundle("inputs")
        if left is None:
            shared.leave("inputs", own)
            return made
        return layers_torch.filled(made, left[0])

    @property
    def record_inputs(self) -> "Any":
        return layers_torch.first_rows(self._on_device(), self.rows)

    def _on_device(self) -> "Any":
        return moved(self.inputs, self._work.device)

    def call(self) -> "list[tuple[Any, ...]]":
        """One inference, from inputs in main memory to outputs in main memory."""
        return host_arrays.all_on_host(self._work.infer(self._on_device()), "output")

    def outputs(self, result: "Any") -> "Any":
        return result

    def record_steps(self, writer: "Writer") -> str:
        layers_torch.record(self.model, self.record_inputs, writer)
        return ""

    def train(self, writer: "Writer", steps: int) -> "tuple[float, Callable[[], Any], list[str]]":
        """Losses, the first step's gradients, weights; see train_keras.record."""
        return train_torch.record(self._work, self._on_device(), writer, steps)

    def in_float64(self) -> "Any":
        from ..judging.lifted_torch import LiftedTorch

        return LiftedTorch(self)

    def computed_on(self) -> "list[str | None]":
        return [host_arrays.device_of(each) for each in self.model.parameters()]

    def on_device(self) -> "tuple[Callable[[], Any], Callable[[Any], Any]]":
        """(function that copies the inputs to the device, function that computes there)."""
        return self._on_device, self._work.infer


def _given(module: "Any", request: "dict[str, Any]") -> "Any":
    """The user's arrays by the names of forward's parameters, else in the order of the file."""
    import torch

    if request["inputs"] is None:
        return None
    arrays = chosen_inputs.read(request["inputs"], request["batch"])
    tensors = [(name, torch.as_tensor(array)) for name, array in arrays]
    if chosen_inputs.wanted_by(module.forward, [name for name, _ in arrays]):
        return dict(tensors)
    return tuple(tensor for _, tensor in tensors)
