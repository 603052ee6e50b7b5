"""Normalizations of tf.contrib.layers."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1 import normalization
from whygpu_bootstrap.tf1.contrib.framework import model_variable
from whygpu_bootstrap.tf1.contrib.layer_base import collected, known_size
from whygpu_bootstrap.tf1.contrib.scope import add_arg_scope
from whygpu_bootstrap.tf1.contrib.utils import get_variable_collections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "unit_norm",
]


@add_arg_scope
def batch_norm(
    inputs: "Any",
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: "Any" = None,
    param_initializers: "Any" = None,
    param_regularizers: "Any" = None,
    updates_collections: "Any" = tf.GraphKeys.UPDATE_OPS,
    is_training: bool = True,
    reuse: "Any" = None,
    variables_collections: "Any" = None,
    outputs_collections: "Any" = None,
    trainable: bool = True,
    batch_weights: "Any" = None,
    fused: "Any" = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: "Any" = None,
    renorm: bool = False,
    renorm_clipping: "Any" = None,
    renorm_decay: float = 0.99,
    adjustment: "Any" = None,
) -> "Any":
    if renorm or adjustment is not None or batch_weights is not None:
        raise NotImplementedError(
            "tf.contrib.layers.batch_norm under --tf1 has neither renorm, adjustment nor "
            "batch_weights"
        )
    inputs = tf.convert_to_tensor(inputs)
    axis = 1 if data_format == "NCHW" else -1
    layer = {
        "initializers": param_initializers or {},
        "regularizers": param_regularizers or {},
        "collections": variables_collections,
        "size": known_size(inputs, axis, "batch_norm"),
    }
    with tf.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse):
        beta = _parameter("beta", tf.zeros_initializer(), layer, trainable) if center else None
        gamma = _parameter("gamma", tf.ones_initializer(), layer, trainable) if scale else None
        mean = _parameter("moving_mean", tf.zeros_initializer(), layer, False)
        variance = _parameter("moving_variance", tf.ones_initializer(), layer, False)
        outputs, updates = normalization.batch_normalization(
            inputs,
            axis,
            gamma,
            beta,
            mean,
            variance,
            epsilon,
            decay,
            is_training,
            zero_debias_moving_mean,
        )
        if updates_collections is None:
            with tf.control_dependencies(updates):
                outputs = tf.identity(outputs)
        else:
            for update in updates:
                collected(updates_collections, update)
        outputs.set_shape(inputs.shape)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collected(outputs_collections, outputs)


def _parameter(name: "Any", initializer: "Any", layer: "Any", trainable: "Any") -> "Any":
    return model_variable(
        name,
        shape=[layer["size"]],
        dtype=tf.float32,
        initializer=layer["initializers"].get(name, initializer),
        regularizer=layer["regularizers"].get(name),
        collections=get_variable_collections(layer["collections"], name),
        trainable=trainable,
    )


def _moment_norm(
    inputs: "Any",
    axes: "Any",
    shape: "Any",
    names: "Any",
    epsilon: "Any",
    center: "Any",
    scale: "Any",
    layer: "Any",
) -> "Any":
    """Normalize over axes, then scale and move by parameters that are reshaped to `shape`."""
    mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
    collections, trainable = layer["variables_collections"], layer["trainable"]
    made = {}
    for name, wanted, start in (
        ("beta", center, tf.zeros_initializer()),
        ("gamma", scale, tf.ones_initializer()),
    ):
        if wanted:
            variable = model_variable(
                name,
                shape=names,
                dtype=inputs.dtype.base_dtype,
                initializer=start,
                collections=get_variable_collections(collections, name),
                trainable=trainable,
            )
            made[name] = tf.reshape(variable, shape) if shape is not None else variable
    outputs = tf.nn.batch_normalization(
        inputs, mean, variance, made.get("beta"), made.get("gamma"), epsilon
    )
    outputs.set_shape(inputs.shape)
    return outputs


def _activated(outputs: "Any", layer: "Any") -> "Any":
    if layer["activation_fn"] is not None:
        outputs = layer["activation_fn"](outputs)
    return collected(layer["outputs_collections"], outputs)


@add_arg_scope
def layer_norm(
    inputs: "Any",
    center: bool = True,
    scale: bool = True,
    activation_fn: "Any" = None,
    reuse: "Any" = None,
    variables_collections: "Any" = None,
    outputs_collections: "Any" = None,
    trainable: bool = True,
    begin_norm_axis: "Any" = 1,
    begin_params_axis: "Any" = -1,
    scope: "Any" = None,
) -> "Any":
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse):
        axes = list(range(begin_norm_axis % rank, rank))
        names = inputs.shape[begin_params_axis % rank :].as_list()
        # The usual value is too small for half precision.
        epsilon = 1e-3 if inputs.dtype == tf.float16 else 1e-12
        outputs = _moment_norm(inputs, axes, None, names, epsilon, center, scale, layer)
        return _activated(outputs, layer)


@add_arg_scope
def instance_norm(
    inputs: "Any",
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: "Any" = None,
    param_initializers: "Any" = None,
    reuse: "Any" = None,
    variables_collections: "Any" = None,
    outputs_collections: "Any" = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: "Any" = None,
) -> "Any":
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    channel = 1 if data_format == "NCHW" else rank - 1
    with tf.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse):
        size = known_size(inputs, channel, "instance_norm")
        axes = [axis for axis in range(1, rank) if axis != channel]
        shape = [size if axis == channel else 1 for axis in range(rank)]
        outputs = _moment_norm(inputs, axes, shape, [size], epsilon, center, scale, layer)
        return _activated(outputs, layer)


@add_arg_scope
def group_norm(
    inputs: "Any",
    groups: "Any" = 32,
    channels_axis: "Any" = -1,
    reduction_axes: "Any" = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: "Any" = None,
    param_initializers: "Any" = None,
    reuse: "Any" = None,
    variables_collections: "Any" = None,
    outputs_collections: "Any" = None,
    trainable: bool = True,
    scope: "Any" = None,
    mean_close_to_zero: bool = False,
) -> "Any":
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    channel = channels_axis % rank
    size = known_size(inputs, channel, "group_norm")
    if size % groups:
        raise ValueError("Invalid groups %d for %d channels." % (groups, size))
    with tf.variable_scope(scope, "GroupNorm", [inputs], reuse=reuse):
        sizes = tf.unstack(tf.shape(inputs))
        apart = sizes[:channel] + [groups, size // groups] + sizes[channel + 1 :]
        axes = [axis % rank for axis in reduction_axes]
        axes = [axis + 1 if axis > channel else axis for axis in axes] + [channel + 1]
        grouped = tf.reshape(inputs, apart)
        static = inputs.shape.as_list()
        grouped.set_shape(static[:channel] + [groups, size // groups] + static[channel + 1 :])
        names = [groups, size // groups]
        shape = [1] * (rank + 1)
        shape[channel : channel + 2] = names
        outputs = _moment_norm(grouped, axes, shape, [size], epsilon, center, scale, layer)
        outputs = tf.reshape(outputs, tf.shape(inputs))
        outputs.set_shape(inputs.shape)
        return _activated(outputs, layer)


@add_arg_scope
def unit_norm(inputs: "Any", dim: "Any", epsilon: float = 1e-7, scope: "Any" = None) -> "Any":
    with tf.variable_scope(scope, "UnitNorm", [inputs]):
        squares = tf.reduce_sum(tf.square(inputs), dim, keep_dims=True)
        return inputs / tf.sqrt(epsilon + squares)
