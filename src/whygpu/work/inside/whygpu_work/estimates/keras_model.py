"""Prepares a Keras model for an estimate, whatever its backend."""

from ..loading import Unusable
from ..work_keras import KerasWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HALF_POLICY = "mixed_bfloat16"
FEW = 2
"""Rows of the arrays from which shapes and types are read."""


def prepared(
    model: "Any", train: bool, optimizer: "str | None", mixed: bool, shapes: "str | None"
) -> "tuple[Any, Any]":
    """Make the model ready to be trained, if it shall be; return inputs and targets of few rows."""
    if mixed:
        _in_half_precision(model)
    work = KerasWork(model, optimizer, shapes)
    inputs = work.inputs(FEW)
    if not train:
        return inputs, None
    if not model.trainable_variables:
        raise Unusable("the model has no weights to train: give --infer")
    work.prepare_training()
    return inputs, work.targets(inputs)


def _in_half_precision(model: "Any") -> None:
    """Make the model compute in 16 bits with weights in 32 bits, as under a mixed policy.

    A layer with its own policy, such as a last layer in float32, keeps it only if it differs from
    the default: in a saved model, an explicit default looks like none.
    """
    import keras

    policy = keras.dtype_policies.get(HALF_POLICY)
    for layer in [model, *model._flatten_layers(include_self=False)]:
        if layer.dtype_policy.name == "float32":
            layer.dtype_policy = policy
