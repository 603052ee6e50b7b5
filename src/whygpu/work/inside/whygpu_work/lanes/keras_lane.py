"""A Keras model in a lane: its outputs, every step of it, its training."""

from .. import trees
from ..work_keras import KerasWork, all_layers
from . import chosen_inputs, host_arrays, layers_keras, sharing, train_keras
from .devices import CannotRun
from .work import LaneWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    import numpy

    from .recording import Writer
    from .sharing import Shared

DEFAULT_BATCH = 4


class KerasLane(LaneWork):
    kind = "keras"

    def __init__(
        self, model: "Any", request: "dict[str, Any]", shared: "Shared", examples: "Any" = None
    ) -> None:
        import keras

        self.model = model
        self._keras = keras
        self._options = request["options"]
        arrays = self._given(request, examples)
        shapes = request["shapes"] if arrays is None else _shapes_text(arrays)
        compiled = getattr(model, "compiled", False) and model.optimizer is not None
        optimizer = None if compiled else "sgd"
        self._seed, self._shapes = request["seed"], shapes
        self._example = examples
        self._work = self._make_work(model, optimizer)
        self.backend = self._work.backend
        self.weights_set = self._share_weights(shared, request["take_weights"])
        self.inputs, self.rows = self._share_inputs(shared, arrays, request["batch"])
        self.items = len(host_arrays.named(self.inputs, "input")[0][1])
        if "xla" in self._options:
            self._use_xla()

    def _make_work(self, model: "Any", optimizer: "str | None" = None) -> "KerasWork":
        return KerasWork(model, optimizer, self._shapes, self._seed, self._example)

    def _given(self, request: "dict[str, Any]", examples: "Any") -> "list[numpy.ndarray] | None":
        """The user's arrays in the order of the model's inputs; None if there are none."""
        if request["inputs"] is not None:
            given = chosen_inputs.read(request["inputs"], request["batch"])
        elif examples is not None:
            given = [(name, host_arrays.plain(leaf)) for name, leaf in _named(examples)]
        else:
            return None
        inputs = getattr(self.model, "inputs", None)
        if not inputs:
            return [array for _, array in given]
        names = input_names(self.model)
        return [
            chosen_inputs.check(array, name, tuple(each.shape[1:]), str(each.dtype))
            for array, name, each in zip(chosen_inputs.matched(given, names), names, inputs)
        ]

    def _share_weights(self, shared: "Shared", take_weights: bool) -> bool:
        """True if the model got the weights of another lane."""
        weights = self.model.weights
        own = [host_arrays.plain(each) for each in weights]
        names = [getattr(each, "path", each.name) for each in weights]
        trainable = [bool(each.trainable) for each in weights]
        given = sharing.weights_for(shared, names, own, trainable, take_weights)
        if given is not None:
            self._set_weights(given)
        return given is not None

    def _set_weights(self, arrays: "Any") -> None:
        self.model.set_weights(arrays)
        for layer in all_layers(self.model):
            if hasattr(layer, "finalize_state"):
                # Normalization computes with values derived from its weights.
                layer.finalize_state()

    def _share_inputs(
        self, shared: "Shared", arrays: "Any", batch: "int | None"
    ) -> "tuple[Any, int]":
        """The inputs in the model's structure, and the number of rows whose steps are recorded."""
        left = shared.bundle("inputs")
        if left is None:
            if arrays is None:
                made = self._work.inputs(batch or DEFAULT_BATCH)
                arrays = [array for _, array in host_arrays.named(made, "input")]
            rows = layers_keras.rows_that_fit(self.model, len(arrays[0]))
            shared.leave("inputs", arrays, rows=rows)
        else:
            arrays, facts = left
            rows = facts["rows"]
        return self._work.arranged(arrays), rows

    @property
    def record_inputs(self) -> "Any":
        """The part of the inputs for which every step is recorded."""
        return host_arrays.mapped(lambda array: array[: self.rows], self.inputs)

    def _use_xla(self) -> None:
        if self.backend == "torch":
            raise CannotRun("PyTorch does not compile with XLA")
        if self.backend == "tensorflow":
            self.model.jit_compile = True

    def call(self) -> "Any":
        """One inference, from inputs in main memory to outputs in main memory."""
        return self._work.infer(self.inputs)

    def outputs(self, result: "Any") -> "list[tuple[Any, ...]]":
        return host_arrays.all_on_host(trees.without_fields(result), "output")

    def record_steps(self, writer: "Writer") -> str:
        return layers_keras.record(self._keras, self.model, self.record_inputs, writer)

    def train(self, writer: "Writer", steps: int) -> "tuple[float, Callable[[], Any], list[str]]":
        """Records losses, gradients and weights; returns the seconds of the first step, a function
        that does one more step, and notes."""
        return train_keras.record(self._keras, self._work, self.inputs, writer, steps)

    def in_float64(self) -> "Any":
        from ..judging.lifted_keras import LiftedKeras

        return LiftedKeras(self._keras, self, self._make_work)

    def computed_on(self) -> "list[str | None]":
        """The devices of the model's weights."""
        return [host_arrays.device_of(each) for each in self.model.weights]

    def on_device(self) -> "tuple[Callable[[], Any], Callable[[Any], Any]]":
        """(function that copies the inputs to the device, function that computes there)."""
        convert = self._keras.ops.convert_to_tensor if hasattr(self._keras, "ops") else None
        if convert is None:
            import tensorflow

            convert = tensorflow.convert_to_tensor

        def move() -> "Any":
            return host_arrays.mapped(convert, self.inputs)

        return move, self._forward()

    def _forward(self) -> "Callable[[Any], Any]":
        model = self.model
        if self.backend == "jax":
            import jax

            compiled = jax.jit(
                lambda tv, ntv, x: model.stateless_call(tv, ntv, x, training=False)[0]
            )
            trained = [each.value for each in model.trainable_variables]
            others = [each.value for each in model.non_trainable_variables]
            return lambda inputs: compiled(trained, others, inputs)
        if self.backend == "tensorflow":
            import tensorflow

            jit = getattr(model, "jit_compile", None) is True
            return tensorflow.function(lambda x: model(x, training=False), jit_compile=jit)
        import torch

        def forward(inputs: "Any") -> "Any":
            with torch.no_grad():
                return model(inputs, training=False)

        return forward


def input_names(model: "Any") -> "list[str]":
    """The names of the inputs: the keys of a dictionary, or the names of the Input tensors."""
    structure = getattr(model, "_inputs_struct", None)
    if isinstance(structure, dict):
        return sorted(structure)
    return [each.name.partition(":")[0] for each in model.inputs]


def _named(examples: "Any") -> "list[tuple[str, Any]]":
    """The arrays by their keys if they are a dictionary, else by their position."""
    if isinstance(examples, dict) and all(host_arrays.is_array(each) for each in examples.values()):
        return list(examples.items())
    return host_arrays.named(examples, "input")


def _shapes_text(arrays: "Any") -> str:
    return ",".join(
        "%s:%s" % ("x".join(str(size) for size in array.shape[1:]), array.dtype.name)
        for array in arrays
    )
