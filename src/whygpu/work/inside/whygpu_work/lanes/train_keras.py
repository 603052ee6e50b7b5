"""Trains a Keras model: the loss of each step, the gradients of the first, the final weights."""

import time

import numpy

from ..work_keras import all_layers
from . import host_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from ..work_keras import KerasWork
    from .recording import Writer

_RATES = ("rate", "dropout", "recurrent_dropout", "stddev", "_dropout")


def record(
    keras: "Any",
    work: "KerasWork",
    inputs: "Any",
    writer: "Writer",
    steps: int,
    names: "Sequence[str] | None" = None,
) -> "tuple[float, Callable[[], Any], list[str]]":
    """Returns (seconds of the first step, a function that does one more step, notes).

    `names`: names for the model's weights, in order, in place of their own.
    """
    model = work.model
    named = dict(zip(map(id, model.weights), names or map(weight_name, model.weights)))
    silenced = silence(model)
    work.prepare_training()
    targets = work.targets(inputs)
    # A loss is a Python number, which has more digits than were computed.
    precision = "float64" if keras.backend.floatx() == "float64" else "float32"
    for weight, gradient in gradients(keras, model, inputs, targets):
        array, dtype = host_arrays.on_host(gradient)
        writer.tensor("gradient " + named[id(weight)], "gradient", array, dtype)
    first = 0.0
    for step in range(steps):
        began = time.perf_counter()
        loss = work.train_step(inputs, targets)
        first = first or time.perf_counter() - began
        writer.tensor("loss[%d]" % (step + 1), "loss", numpy.asarray(loss, precision))
    for each in model.weights:
        array, dtype = host_arrays.on_host(each)
        writer.tensor("weight " + named[id(each)], "weight", array, dtype)
    notes = []
    if silenced:
        notes.append(
            "random numbers in training are switched off (%s), because devices and backends draw "
            "different ones" % ", ".join(silenced[:5] + (["..."] if len(silenced) > 5 else []))
        )
    return first, lambda: work.train_step(inputs, targets), notes


def silence(model: "Any") -> "list[str]":
    """Set the rates of dropout and noise to 0; returns the names of the layers that had some."""
    names = []
    for layer in all_layers(model):
        for rate in _RATES:
            value = getattr(layer, rate, None)
            if isinstance(value, float) and value > 0:
                setattr(layer, rate, 0.0)
                if layer.name not in names:
                    names.append(layer.name)
    return names


def weight_name(weight: "Any") -> str:
    return str(getattr(weight, "path", None) or weight.name)


def gradients(keras: "Any", model: "Any", inputs: "Any", targets: "Any") -> "list[tuple[Any, Any]]":
    """[(weight, gradient)] of the loss that the model was compiled with."""
    weights = model.trainable_weights
    before = model.get_weights()
    backend = keras.backend.backend()
    found = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend](
        keras, model, weights, inputs, targets
    )
    # A training pass changes the averages of normalizations.
    model.set_weights(before)
    return [(weight, each) for weight, each in zip(weights, found) if each is not None]


def _loss(model: "Any", inputs: "Any", targets: "Any") -> "Any":
    predicted = model(inputs, training=True)
    return model.compute_loss(x=inputs, y=targets, y_pred=predicted)


def _tensors(keras: "Any", tree: "Any") -> "Any":
    convert = keras.ops.convert_to_tensor if hasattr(keras, "ops") else _tensorflow_tensor
    leaves = [convert(leaf) for _, leaf in host_arrays.named(tree, "")]
    return host_arrays.replaced(tree, iter(leaves))


def _tensorflow_tensor(array: "numpy.ndarray") -> "Any":
    import tensorflow

    return tensorflow.convert_to_tensor(array)


def _tensorflow(
    keras: "Any", model: "Any", weights: "Any", inputs: "Any", targets: "Any"
) -> "list[Any]":
    import tensorflow

    inputs, targets = _tensors(keras, inputs), _tensors(keras, targets)
    with tensorflow.GradientTape() as tape:
        loss = _loss(model, inputs, targets)
    found = tape.gradient(loss, [getattr(each, "value", each) for each in weights])
    return [None if each is None else tensorflow.convert_to_tensor(each) for each in found]


def _jax(keras: "Any", model: "Any", weights: "Any", inputs: "Any", targets: "Any") -> "Any":
    import jax

    def loss_of(values: "Any", inputs: "Any", targets: "Any") -> "Any":
        with keras.StatelessScope(state_mapping=list(zip(weights, values))):
            return _loss(model, inputs, targets)

    values = [each.value for each in weights]
    return jax.jit(jax.grad(loss_of))(values, _tensors(keras, inputs), _tensors(keras, targets))


def _torch(keras: "Any", model: "Any", weights: "Any", inputs: "Any", targets: "Any") -> "Any":
    for each in weights:
        each.value.grad = None
    loss = _loss(model, _tensors(keras, inputs), _tensors(keras, targets))
    loss.backward()
    found = [each.value.grad for each in weights]
    for each in weights:
        each.value.grad = None
    return found
