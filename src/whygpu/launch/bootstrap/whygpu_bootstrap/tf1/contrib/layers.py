"""The layers of tf.contrib.layers and tf.contrib.slim, with their variable names and collections.

A checkpoint that TensorFlow 1 wrote fits: weights are `<scope>/weights`, biases `<scope>/biases`.
"""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1 import normalization
from whygpu_bootstrap.tf1.contrib.framework import model_variable
from whygpu_bootstrap.tf1.contrib.layer_base import (
    XAVIER,
    ZEROS,
    collected,
    finished,
    known_size,
    weights_variable,
)
from whygpu_bootstrap.tf1.contrib.scope import add_arg_scope
from whygpu_bootstrap.tf1.contrib.utils import last_dimension

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "bias_add",
    "dropout",
    "elu",
    "embed_sequence",
    "embedding_lookup_unique",
    "flatten",
    "fully_connected",
    "legacy_fully_connected",
    "legacy_linear",
    "legacy_relu",
    "linear",
    "relu",
    "relu6",
    "repeat",
    "softmax",
    "stack",
]


@add_arg_scope
def fully_connected(
    inputs: "Any",
    num_outputs: "Any",
    activation_fn: "Any" = tf.nn.relu,
    normalizer_fn: "Any" = None,
    normalizer_params: "Any" = None,
    weights_initializer: "Any" = XAVIER,
    weights_regularizer: "Any" = None,
    biases_initializer: "Any" = ZEROS,
    biases_regularizer: "Any" = None,
    reuse: "Any" = None,
    variables_collections: "Any" = None,
    outputs_collections: "Any" = None,
    trainable: bool = True,
    scope: "Any" = None,
) -> "Any":
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "fully_connected", [inputs], reuse=reuse):
        size = known_size(inputs, -1, "fully_connected")
        weights = weights_variable([size, num_outputs], layer, inputs.dtype.base_dtype)
        if inputs.shape.ndims == 2:
            outputs = tf.matmul(inputs, weights)
        else:
            outputs = tf.tensordot(inputs, weights, [[inputs.shape.ndims - 1], [0]])
            outputs.set_shape(inputs.shape[:-1].concatenate(num_outputs))
        return finished(outputs, layer)


def relu(*args: "Any", **kwargs: "Any") -> "Any":
    return fully_connected(*args, **dict(kwargs, activation_fn=tf.nn.relu))


def relu6(*args: "Any", **kwargs: "Any") -> "Any":
    return fully_connected(*args, **dict(kwargs, activation_fn=tf.nn.relu6))


def elu(*args: "Any", **kwargs: "Any") -> "Any":
    return fully_connected(*args, **dict(kwargs, activation_fn=tf.nn.elu))


def linear(*args: "Any", **kwargs: "Any") -> "Any":
    return fully_connected(*args, **dict(kwargs, activation_fn=None))


def legacy_fully_connected(
    x: "Any",
    num_output_units: "Any",
    activation_fn: "Any" = None,
    weight_init: "Any" = XAVIER,
    bias_init: "Any" = ZEROS,
    name: "Any" = None,
    **options: "Any",
) -> "Any":
    return fully_connected(
        x,
        num_output_units,
        activation_fn=activation_fn,
        weights_initializer=weight_init,
        biases_initializer=bias_init,
        scope=name or "fully_connected",
        **options,
    )


def legacy_linear(*args: "Any", **kwargs: "Any") -> "Any":
    return legacy_fully_connected(*args, **kwargs)


def legacy_relu(*args: "Any", **kwargs: "Any") -> "Any":
    return legacy_fully_connected(*args, **dict(kwargs, activation_fn=tf.nn.relu))


@add_arg_scope
def softmax(logits: "Any", scope: "Any" = None) -> "Any":
    """Over the last dimension, which must be known."""
    with tf.variable_scope(scope, "softmax", [logits]):
        classes = last_dimension(logits.shape, min_rank=2)
        rows = tf.nn.softmax(tf.reshape(logits, [-1, classes]))
        predictions = tf.reshape(rows, tf.shape(logits))
        predictions.set_shape(logits.shape)
        return predictions


@add_arg_scope
def flatten(inputs: "Any", outputs_collections: "Any" = None, scope: "Any" = None) -> "Any":
    inputs = tf.convert_to_tensor(inputs)
    with tf.name_scope(scope, "Flatten", [inputs]) as name:
        sizes = [dimension.value for dimension in inputs.shape.dims[1:]]
        width = -1
        if None not in sizes:
            width = 1
            for size in sizes:
                width *= size
        batch = inputs.shape.dims[0].value
        rows = tf.shape(inputs)[0] if batch is None else batch
        outputs = tf.reshape(inputs, tf.stack([rows, width]))
        outputs.set_shape([batch, None if width == -1 else width])
        return collected(outputs_collections, outputs, name)


@add_arg_scope
def dropout(
    inputs: "Any",
    keep_prob: float = 0.5,
    noise_shape: "Any" = None,
    is_training: bool = True,
    outputs_collections: "Any" = None,
    scope: "Any" = None,
    seed: "Any" = None,
) -> "Any":
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "Dropout", [inputs]):

        def dropped() -> "Any":
            return tf.nn.dropout(inputs, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed)

        fixed = normalization.constant(is_training)
        if fixed is None:
            outputs = tf.cond(is_training, dropped, lambda: tf.identity(inputs))
        else:
            outputs = dropped() if fixed else tf.identity(inputs)
        return collected(outputs_collections, outputs)


@add_arg_scope
def bias_add(
    inputs: "Any",
    activation_fn: "Any" = None,
    initializer: "Any" = ZEROS,
    regularizer: "Any" = None,
    reuse: "Any" = None,
    variables_collections: "Any" = None,
    outputs_collections: "Any" = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: "Any" = None,
) -> "Any":
    layer = dict(locals(), normalizer_fn=None)
    layer.update(biases_initializer=initializer, biases_regularizer=regularizer)
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse):
        return finished(inputs, layer, data_format == "NCHW")


def embed_sequence(
    ids: "Any",
    vocab_size: "Any" = None,
    embed_dim: "Any" = None,
    unique: bool = False,
    initializer: "Any" = None,
    regularizer: "Any" = None,
    trainable: bool = True,
    scope: "Any" = None,
    reuse: "Any" = None,
) -> "Any":
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got "
            "vocab_size=%s and embed_dim=%s" % (vocab_size, embed_dim)
        )
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        embeddings = model_variable(
            "embeddings",
            shape=shape,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        return tf.nn.embedding_lookup(embeddings, ids)


def embedding_lookup_unique(
    params: "Any", ids: "Any", partition_strategy: str = "mod", name: "Any" = None
) -> "Any":
    """An embedding lookup that looks up each id once."""
    with tf.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        flat, places = tf.unique(tf.reshape(ids, [-1]))
        found = tf.gather(tf.nn.embedding_lookup(params, flat, partition_strategy), places)
        shape = tf.concat([tf.shape(ids), tf.shape(found)[1:]], 0)
        return tf.reshape(found, shape)


def repeat(inputs: "Any", repetitions: "Any", layer: "Any", *args: "Any", **kwargs: "Any") -> "Any":
    """The same layer several times, in scopes scope/scope_1, scope/scope_2 and so on."""
    scope = kwargs.pop("scope", None)
    with tf.variable_scope(scope, "Repeat", [inputs]):
        name = scope or getattr(layer, "__name__", "repeat")
        for number in range(1, repetitions + 1):
            inputs = layer(inputs, *args, scope="%s_%d" % (name, number), **kwargs)
        return inputs


def stack(inputs: "Any", layer: "Any", stack_args: "Any", **kwargs: "Any") -> "Any":
    """Layers on top of each other, each with its own arguments."""
    scope, reuse = kwargs.pop("scope", None), kwargs.pop("reuse", None)
    with tf.variable_scope(scope, "Stack", [inputs], reuse=reuse):
        name = scope or getattr(layer, "__name__", "stack")
        for number, given in enumerate(stack_args, 1):
            given = given if isinstance(given, (list, tuple)) else [given]
            inputs = layer(inputs, *given, scope="%s_%d" % (name, number), **kwargs)
        return inputs
