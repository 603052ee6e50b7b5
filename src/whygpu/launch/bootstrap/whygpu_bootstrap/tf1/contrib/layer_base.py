"""What the layers of tf.contrib share: their variables, bias, activation and collections."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.contrib.framework import model_variable
from whygpu_bootstrap.tf1.contrib.parts import xavier_initializer
from whygpu_bootstrap.tf1.contrib.utils import collect_named_outputs, get_variable_collections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

XAVIER = xavier_initializer()
ZEROS = tf.zeros_initializer()


def collected(collections: "Any", outputs: "Any", scope: "Any" = None) -> "Any":
    """Outputs, put into collections under the name of the layer's scope."""
    name = tf.get_variable_scope().name if scope is None else scope
    return collect_named_outputs(collections, name, outputs)


def known_size(inputs: "Any", axis: "Any", what: "Any") -> "Any":
    size = inputs.shape.dims[axis].value
    if size is None:
        raise ValueError(
            "The last dimension of the inputs to %s must be known: %s" % (what, inputs.shape)
        )
    return size


def finished(outputs: "Any", layer: "Any", channels_first: bool = False) -> "Any":
    """Bias or normalization, then activation; `layer` holds what the caller was given."""
    if layer["normalizer_fn"] is not None:
        outputs = layer["normalizer_fn"](outputs, **(layer["normalizer_params"] or {}))
    elif layer["biases_initializer"] is not None:
        biases = model_variable(
            "biases",
            shape=[known_size(outputs, 1 if channels_first else -1, "a layer")],
            dtype=outputs.dtype.base_dtype,
            initializer=layer["biases_initializer"],
            regularizer=layer["biases_regularizer"],
            collections=get_variable_collections(layer["variables_collections"], "biases"),
            trainable=layer["trainable"],
        )
        outputs = _with_bias(outputs, biases, channels_first)
    if layer["activation_fn"] is not None:
        outputs = layer["activation_fn"](outputs)
    return collected(layer["outputs_collections"], outputs)


def _with_bias(outputs: "Any", biases: "Any", channels_first: "Any") -> "Any":
    if channels_first:
        shape = [1, -1] + [1] * (outputs.shape.ndims - 2)
        return outputs + tf.reshape(biases, shape)
    return tf.nn.bias_add(outputs, biases)


def weights_variable(shape: "Any", layer: "Any", dtype: "Any", name: str = "weights") -> "Any":
    return model_variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=layer["weights_initializer"],
        regularizer=layer["weights_regularizer"],
        collections=get_variable_collections(layer["variables_collections"], name),
        trainable=layer["trainable"],
    )


def as_list(value: "Any", count: "Any") -> "Any":
    return [value] * count if isinstance(value, int) else [int(each) for each in value]
