"""A Keras model in float64, for the reference task."""

import numpy

from .. import trees
from ..lanes import host_arrays, layers_keras, taps_keras, train_keras
from .float64_keras import lifted
from .tools_keras import KerasTools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..lanes.recording import Writer
    from ..work_keras import KerasWork


class LiftedKeras(object):
    def __init__(self, keras: "Any", lane: "Any", make_work: "Callable[..., KerasWork]") -> None:
        """`make_work(model)` returns a KerasWork with the seed and the shapes of the lane."""
        self._keras = keras
        self._original = lane.model
        self._make_work = make_work
        # A loss and everything else without its own dtype uses this.
        keras.config.set_floatx("float64")
        self._inputs = wide(lane.inputs)
        self._record_inputs = wide(lane.record_inputs)
        self._model = lifted(keras, lane.model, self._record_inputs, lane.build_again)
        self._weights = self._model.get_weights()

    def tools(self) -> "KerasTools":
        return KerasTools(self._keras)

    def given(self) -> "list[Any]":
        """The arrays that `force` passes to the model."""
        return [leaf for _, leaf in host_arrays.named(self._record_inputs, "input")]

    def call(self) -> "Any":
        return self._make_work(self._model).infer(self._inputs)

    def outputs(self, result: "Any") -> "list[tuple[Any, ...]]":
        return host_arrays.all_on_host(trees.without_fields(result), "output")

    def force(self, on_step: "Callable[..., Any]") -> None:
        """Run one inference step by step, for the rows of which lanes recorded every step."""
        taps = taps_keras.tapped(self._keras, self._model, on_step)
        with taps, layers_keras.without_gradients(self._keras):
            self._model(self._record_inputs, training=False)

    def train(
        self, writer: "Writer", steps: int, change: "Callable[[Any], Any] | None" = None
    ) -> None:
        """Train from the weights and inputs of all lanes, changed by `change` if given."""
        change = change or (lambda array: array)
        self._model.set_weights([change(array) for array in self._weights])
        optimizer, loss = _as_compiled(self._original)
        self._model.compile(optimizer=optimizer, loss=loss)
        work = self._make_work(self._model)
        inputs = host_arrays.mapped(change, self._inputs)
        # A Sequential that is built again names its weights differently.
        names = [train_keras.weight_name(each) for each in self._original.weights]
        train_keras.record(self._keras, work, inputs, writer, steps, names)


def _as_compiled(model: "Any") -> "tuple[Any, Any]":
    """A new optimizer like the model's, and the model's loss, as train_keras needs them."""
    optimizer = getattr(model, "optimizer", None)
    if not getattr(model, "compiled", False) or optimizer is None:
        return "sgd", "mse"
    return type(optimizer).from_config(optimizer.get_config()), model.loss


def wide(inputs: "Any") -> "Any":
    return host_arrays.mapped(
        lambda a: a.astype(numpy.float64) if a.dtype.kind == "f" else a, inputs
    )
