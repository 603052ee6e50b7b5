"""Convolutions and pooling of tf.contrib.layers."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.contrib.layer_base import (
    XAVIER,
    ZEROS,
    as_list,
    collected,
    finished,
    known_size,
    weights_variable,
)
from whygpu_bootstrap.tf1.contrib.scope import add_arg_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "avg_pool2d",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "convolution",
    "convolution2d",
    "convolution2d_transpose",
    "max_pool2d",
    "separable_conv2d",
    "separable_convolution2d",
]


@add_arg_scope
def convolution(
    inputs: "Any",
    num_outputs: "Any",
    kernel_size: "Any",
    stride: "Any" = 1,
    padding: str = "SAME",
    data_format: "Any" = None,
    rate: "Any" = 1,
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
    conv_dims: "Any" = None,
) -> "Any":
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    dims = inputs.shape.ndims - 2
    if conv_dims is not None and conv_dims != dims:
        raise ValueError(
            "Convolution expects input with rank %d, got %d" % (conv_dims + 2, inputs.shape.ndims)
        )
    first = data_format is not None and data_format.startswith("NC")
    with tf.variable_scope(scope, "Conv", [inputs], reuse=reuse):
        size = known_size(inputs, 1 if first else -1, "convolution")
        shape = as_list(kernel_size, dims) + [size, num_outputs]
        weights = weights_variable(shape, layer, inputs.dtype.base_dtype)
        outputs = tf.nn.convolution(
            inputs,
            weights,
            padding.upper(),
            strides=as_list(stride, dims),
            dilation_rate=as_list(rate, dims),
            data_format=data_format,
        )
        return finished(outputs, layer, first)


convolution2d = convolution
conv1d = convolution
conv2d = convolution
conv3d = convolution


@add_arg_scope
def convolution2d_transpose(
    inputs: "Any",
    num_outputs: "Any",
    kernel_size: "Any",
    stride: "Any" = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
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
    first = data_format == "NCHW"
    with tf.variable_scope(scope, "Conv2d_transpose", [inputs], reuse=reuse):
        size = known_size(inputs, 1 if first else -1, "conv2d_transpose")
        kernel, steps = as_list(kernel_size, 2), as_list(stride, 2)
        weights = weights_variable(kernel + [num_outputs, size], layer, inputs.dtype.base_dtype)
        places = (2, 3) if first else (1, 2)
        dynamic, static = tf.shape(inputs), []
        sizes = []
        for place, extent, step in zip(places, kernel, steps):
            extra = 0 if padding.upper() == "SAME" else max(extent - step, 0)
            sizes.append(dynamic[place] * step + extra)
            known = inputs.shape.dims[place].value
            static.append(None if known is None else known * step + extra)
        channels = [num_outputs]
        shape = [dynamic[0]] + (channels + sizes if first else sizes + channels)
        all_steps = [1, 1] + steps if first else [1] + steps + [1]
        outputs = tf.nn.conv2d_transpose(
            inputs, weights, tf.stack(shape), all_steps, padding.upper(), data_format=data_format
        )
        batch = [inputs.shape.dims[0].value]
        outputs.set_shape(batch + (channels + static if first else static + channels))
        return finished(outputs, layer, first)


conv2d_transpose = convolution2d_transpose


@add_arg_scope
def separable_convolution2d(
    inputs: "Any",
    num_outputs: "Any",
    kernel_size: "Any",
    depth_multiplier: "Any" = 1,
    stride: "Any" = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: "Any" = 1,
    activation_fn: "Any" = tf.nn.relu,
    normalizer_fn: "Any" = None,
    normalizer_params: "Any" = None,
    weights_initializer: "Any" = XAVIER,
    pointwise_initializer: "Any" = None,
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
    with tf.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse):
        size = known_size(inputs, -1, "separable_conv2d")
        dtype = inputs.dtype.base_dtype
        shape = as_list(kernel_size, 2) + [size, depth_multiplier]
        depthwise = weights_variable(shape, layer, dtype, "depthwise_weights")
        steps = [1] + as_list(stride, 2) + [1]
        rates, padding = as_list(rate, 2), padding.upper()
        if num_outputs is None:
            outputs = tf.nn.depthwise_conv2d(inputs, depthwise, steps, padding, rates)
        else:
            point = dict(layer, weights_initializer=pointwise_initializer or weights_initializer)
            shape = [1, 1, size * depth_multiplier, num_outputs]
            pointwise = weights_variable(shape, point, dtype, "pointwise_weights")
            outputs = tf.nn.separable_conv2d(inputs, depthwise, pointwise, steps, padding, rates)
        return finished(outputs, layer)


separable_conv2d = separable_convolution2d


def _pool(
    pool: "Any",
    inputs: "Any",
    kernel_size: "Any",
    stride: "Any",
    padding: "Any",
    data_format: "Any",
    collections: "Any",
    scope: "Any",
    default: "Any",
) -> "Any":
    with tf.name_scope(scope, default, [inputs]) as name:
        kernel, steps = as_list(kernel_size, 2), as_list(stride, 2)
        first = data_format == "NCHW"
        kernel = [1, 1] + kernel if first else [1] + kernel + [1]
        steps = [1, 1] + steps if first else [1] + steps + [1]
        outputs = pool(inputs, kernel, steps, padding.upper(), data_format=data_format)
        return collected(collections, outputs, name)


@add_arg_scope
def max_pool2d(
    inputs: "Any",
    kernel_size: "Any",
    stride: "Any" = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: "Any" = None,
    scope: "Any" = None,
) -> "Any":
    given = (inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)
    return _pool(tf.nn.max_pool, *given, default="MaxPool2D")


@add_arg_scope
def avg_pool2d(
    inputs: "Any",
    kernel_size: "Any",
    stride: "Any" = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: "Any" = None,
    scope: "Any" = None,
) -> "Any":
    given = (inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)
    return _pool(tf.nn.avg_pool, *given, default="AvgPool2D")
