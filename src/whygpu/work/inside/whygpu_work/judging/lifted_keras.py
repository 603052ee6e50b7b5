"""A Keras model in float64, as the reference task works with it."""

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
        """`make_work(model)` gives a KerasWork with the seed and the shapes of the lane."""
        self._keras = keras
        self._original = lane.model
        self._make_work = make_work
        # What has no type of its own, such as a loss, goes by this.
        keras.config.set_floatx("float64")
        self._inputs = wide(lane.inputs)
        self._record_inputs = wide(lane.record_inputs)
        self._model = lifted(keras, lane.model, self._record_inputs, lane.build_again)
        self._weights = self._model.get_weights()

    def tools(self) -> "KerasTools":
        return KerasTools(self._keras)

    def given(self) -> "list[Any]":
        """The arrays that `force` gives the model."""
        return [leaf for _, leaf in host_arrays.named(self._record_inputs, "input")]

    def call(self) -> "Any":
        return self._make_work(self._model).infer(self._inputs)

    def outputs(self, result: "Any") -> "list[tuple[Any, ...]]":
        return host_arrays.all_on_host(trees.without_fields(result), "output")

    def force(self, on_step: "Callable[..., Any]") -> None:
        """One inference step by step, for the rows of which lanes have recorded every step."""
        taps = taps_keras.tapped(self._keras, self._model, on_step)
        with taps, layers_keras.without_gradients(self._keras):
            self._model(self._record_inputs, training=False)

    def train(
        self, writer: "Writer", steps: int, change: "Callable[[Any], Any] | None" = None
    ) -> None:
        """From the weights that all lanes began with, and their inputs, changed where wanted."""
        change = change or (lambda array: array)
        self._model.set_weights([change(array) for array in self._weights])
        optimizer, loss = _as_compiled(self._original)
        self._model.compile(optimizer=optimizer, loss=loss)
        work = self._make_work(self._model)
        inputs = host_arrays.mapped(change, self._inputs)
        # Built again, a Sequential names its weights otherwise.
        names = [train_keras.weight_name(each) for each in self._original.weights]
        train_keras.record(self._keras, work, inputs, writer, steps, names)


def _as_compiled(model: "Any") -> "tuple[Any, Any]":
    """The optimiser, made anew, and the loss of a model, as train_keras would have them."""
    optimizer = getattr(model, "optimizer", None)
    if not getattr(model, "compiled", False) or optimizer is None:
        return "sgd", "mse"
    return type(optimizer).from_config(optimizer.get_config()), model.loss


def wide(inputs: "Any") -> "Any":
    return host_arrays.mapped(
        lambda a: a.astype(numpy.float64) if a.dtype.kind == "f" else a, inputs
    )
