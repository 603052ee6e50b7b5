"""The layers of tf.contrib.layers and tf.contrib.slim, with their variable names and collections.

A checkpoint that TensorFlow 1 wrote fits: weights are `<scope>/weights`, biases `<scope>/biases`.
"""

import tensorflow.compat.v1 as tf
from whygpu_bootstrap import tf1_normalization
from whygpu_bootstrap.tf1_contrib_framework import model_variable
from whygpu_bootstrap.tf1_contrib_parts import xavier_initializer
from whygpu_bootstrap.tf1_contrib_scope import add_arg_scope

__all__ = ["avg_pool2d", "batch_norm", "bias_add", "conv1d", "conv2d", "conv2d_transpose"]
__all__ += ["conv3d", "convolution", "convolution2d", "convolution2d_transpose", "dropout"]
__all__ += ["embed_sequence", "embedding_lookup_unique", "flatten", "fully_connected"]
__all__ += ["group_norm", "instance_norm", "layer_norm", "legacy_fully_connected", "linear"]
__all__ += ["max_pool2d", "relu", "relu6", "repeat", "separable_conv2d", "separable_convolution2d"]
__all__ += ["stack", "unit_norm"]


def _collections(wanted, name):
    """Those a kind of variable goes to: for all kinds one list, or one for each."""
    return wanted.get(name) if isinstance(wanted, dict) else wanted


def _collected(collections, outputs):
    for name in [collections] if isinstance(collections, str) else collections or ():
        tf.add_to_collection(name, outputs)
    return outputs


def _known(inputs, axis, what):
    size = inputs.shape.dims[axis].value
    if size is None:
        raise ValueError("The last dimension of the inputs to %s must be known: %s"
                         % (what, inputs.shape))
    return size


def _finished(outputs, layer, channels_first=False):
    """Bias or normalization, then activation; `layer` holds what the caller was given."""
    if layer["normalizer_fn"] is not None:
        outputs = layer["normalizer_fn"](outputs, **(layer["normalizer_params"] or {}))
    elif layer["biases_initializer"] is not None:
        biases = model_variable(
            "biases",
            shape=[_known(outputs, 1 if channels_first else -1, "a layer")],
            dtype=outputs.dtype.base_dtype,
            initializer=layer["biases_initializer"],
            regularizer=layer["biases_regularizer"],
            collections=_collections(layer["variables_collections"], "biases"),
            trainable=layer["trainable"],
        )
        outputs = _with_bias(outputs, biases, channels_first)
    if layer["activation_fn"] is not None:
        outputs = layer["activation_fn"](outputs)
    return _collected(layer["outputs_collections"], outputs)


def _with_bias(outputs, biases, channels_first):
    if channels_first:
        shape = [1, -1] + [1] * (outputs.shape.ndims - 2)
        return outputs + tf.reshape(biases, shape)
    return tf.nn.bias_add(outputs, biases)


def _weights(shape, layer, dtype, name="weights"):
    return model_variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=layer["weights_initializer"],
        regularizer=layer["weights_regularizer"],
        collections=_collections(layer["variables_collections"], name),
        trainable=layer["trainable"],
    )


@add_arg_scope
def fully_connected(
    inputs,
    num_outputs,
    activation_fn=tf.nn.relu,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=xavier_initializer(),
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer(),
    biases_regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "fully_connected", [inputs], reuse=reuse):
        size = _known(inputs, -1, "fully_connected")
        weights = _weights([size, num_outputs], layer, inputs.dtype.base_dtype)
        if inputs.shape.ndims == 2:
            outputs = tf.matmul(inputs, weights)
        else:
            outputs = tf.tensordot(inputs, weights, [[inputs.shape.ndims - 1], [0]])
            outputs.set_shape(inputs.shape[:-1].concatenate(num_outputs))
        return _finished(outputs, layer)


def relu(*args, **kwargs):
    return fully_connected(*args, **dict(kwargs, activation_fn=tf.nn.relu))


def relu6(*args, **kwargs):
    return fully_connected(*args, **dict(kwargs, activation_fn=tf.nn.relu6))


def linear(*args, **kwargs):
    return fully_connected(*args, **dict(kwargs, activation_fn=None))


def legacy_fully_connected(
    x,
    num_output_units,
    activation_fn=None,
    weight_init=xavier_initializer(),
    bias_init=tf.zeros_initializer(),
    name=None,
    **options
):
    return fully_connected(
        x,
        num_output_units,
        activation_fn=activation_fn,
        weights_initializer=weight_init,
        biases_initializer=bias_init,
        scope=name or "fully_connected",
        **options
    )


def _as_list(value, count):
    return [value] * count if isinstance(value, int) else [int(each) for each in value]


@add_arg_scope
def convolution(
    inputs,
    num_outputs,
    kernel_size,
    stride=1,
    padding="SAME",
    data_format=None,
    rate=1,
    activation_fn=tf.nn.relu,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=xavier_initializer(),
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer(),
    biases_regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
    conv_dims=None,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    dims = inputs.shape.ndims - 2
    if conv_dims is not None and conv_dims != dims:
        raise ValueError("Convolution expects input with rank %d, got %d"
                         % (conv_dims + 2, inputs.shape.ndims))
    first = data_format is not None and data_format.startswith("NC")
    with tf.variable_scope(scope, "Conv", [inputs], reuse=reuse):
        size = _known(inputs, 1 if first else -1, "convolution")
        shape = _as_list(kernel_size, dims) + [size, num_outputs]
        weights = _weights(shape, layer, inputs.dtype.base_dtype)
        outputs = tf.nn.convolution(
            inputs,
            weights,
            padding,
            strides=_as_list(stride, dims),
            dilation_rate=_as_list(rate, dims),
            data_format=data_format,
        )
        return _finished(outputs, layer, first)


convolution2d = convolution
conv1d = convolution
conv2d = convolution
conv3d = convolution


@add_arg_scope
def convolution2d_transpose(
    inputs,
    num_outputs,
    kernel_size,
    stride=1,
    padding="SAME",
    data_format="NHWC",
    activation_fn=tf.nn.relu,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=xavier_initializer(),
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer(),
    biases_regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    first = data_format == "NCHW"
    with tf.variable_scope(scope, "Conv2d_transpose", [inputs], reuse=reuse):
        size = _known(inputs, 1 if first else -1, "conv2d_transpose")
        kernel, steps = _as_list(kernel_size, 2), _as_list(stride, 2)
        weights = _weights(kernel + [num_outputs, size], layer, inputs.dtype.base_dtype)
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
        return _finished(outputs, layer, first)


conv2d_transpose = convolution2d_transpose


@add_arg_scope
def separable_convolution2d(
    inputs,
    num_outputs,
    kernel_size,
    depth_multiplier=1,
    stride=1,
    padding="SAME",
    data_format="NHWC",
    rate=1,
    activation_fn=tf.nn.relu,
    normalizer_fn=None,
    normalizer_params=None,
    weights_initializer=xavier_initializer(),
    pointwise_initializer=None,
    weights_regularizer=None,
    biases_initializer=tf.zeros_initializer(),
    biases_regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse):
        size = _known(inputs, -1, "separable_conv2d")
        dtype = inputs.dtype.base_dtype
        shape = _as_list(kernel_size, 2) + [size, depth_multiplier]
        depthwise = _weights(shape, layer, dtype, "depthwise_weights")
        steps = [1] + _as_list(stride, 2) + [1]
        rates = _as_list(rate, 2)
        if num_outputs is None:
            outputs = tf.nn.depthwise_conv2d(inputs, depthwise, steps, padding, rates)
        else:
            point = dict(layer, weights_initializer=pointwise_initializer or weights_initializer)
            shape = [1, 1, size * depth_multiplier, num_outputs]
            pointwise = _weights(shape, point, dtype, "pointwise_weights")
            outputs = tf.nn.separable_conv2d(inputs, depthwise, pointwise, steps, padding, rates)
        return _finished(outputs, layer)


separable_conv2d = separable_convolution2d


def _pool(pool, inputs, kernel_size, stride, padding, data_format, collections, scope, default):
    with tf.name_scope(scope, default, [inputs]):
        kernel, steps = _as_list(kernel_size, 2), _as_list(stride, 2)
        first = data_format == "NCHW"
        kernel = [1, 1] + kernel if first else [1] + kernel + [1]
        steps = [1, 1] + steps if first else [1] + steps + [1]
        outputs = pool(inputs, kernel, steps, padding, data_format=data_format)
        return _collected(collections, outputs)


@add_arg_scope
def max_pool2d(
    inputs,
    kernel_size,
    stride=2,
    padding="VALID",
    data_format="NHWC",
    outputs_collections=None,
    scope=None,
):
    given = (inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)
    return _pool(tf.nn.max_pool, *given, default="MaxPool2D")


@add_arg_scope
def avg_pool2d(
    inputs,
    kernel_size,
    stride=2,
    padding="VALID",
    data_format="NHWC",
    outputs_collections=None,
    scope=None,
):
    given = (inputs, kernel_size, stride, padding, data_format, outputs_collections, scope)
    return _pool(tf.nn.avg_pool, *given, default="AvgPool2D")


@add_arg_scope
def flatten(inputs, outputs_collections=None, scope=None):
    inputs = tf.convert_to_tensor(inputs)
    with tf.name_scope(scope, "Flatten", [inputs]):
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
        return _collected(outputs_collections, outputs)


@add_arg_scope
def dropout(
    inputs,
    keep_prob=0.5,
    noise_shape=None,
    is_training=True,
    outputs_collections=None,
    scope=None,
    seed=None,
):
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "Dropout", [inputs]):

        def dropped():
            return tf.nn.dropout(inputs, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed)

        fixed = tf1_normalization.constant(is_training)
        if fixed is None:
            outputs = tf.cond(is_training, dropped, lambda: tf.identity(inputs))
        else:
            outputs = dropped() if fixed else tf.identity(inputs)
        return _collected(outputs_collections, outputs)


@add_arg_scope
def bias_add(
    inputs,
    activation_fn=None,
    initializer=tf.zeros_initializer(),
    regularizer=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    data_format="NHWC",
    scope=None,
):
    layer = dict(locals(), normalizer_fn=None)
    layer.update(biases_initializer=initializer, biases_regularizer=regularizer)
    inputs = tf.convert_to_tensor(inputs)
    with tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse):
        return _finished(inputs, layer, data_format == "NCHW")


@add_arg_scope
def batch_norm(
    inputs,
    decay=0.999,
    center=True,
    scale=False,
    epsilon=0.001,
    activation_fn=None,
    param_initializers=None,
    param_regularizers=None,
    updates_collections=tf.GraphKeys.UPDATE_OPS,
    is_training=True,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    batch_weights=None,
    fused=None,
    data_format="NHWC",
    zero_debias_moving_mean=False,
    scope=None,
    renorm=False,
    renorm_clipping=None,
    renorm_decay=0.99,
    adjustment=None,
):
    if renorm or adjustment is not None or batch_weights is not None or zero_debias_moving_mean:
        raise NotImplementedError(
            "tf.contrib.layers.batch_norm under --tf1 has neither renorm, adjustment, "
            "batch_weights nor zero_debias_moving_mean"
        )
    inputs = tf.convert_to_tensor(inputs)
    axis = 1 if data_format == "NCHW" else -1
    layer = {
        "initializers": param_initializers or {},
        "regularizers": param_regularizers or {},
        "collections": variables_collections,
        "size": _known(inputs, axis, "batch_norm"),
    }
    with tf.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse):
        beta = _parameter("beta", tf.zeros_initializer(), layer, trainable) if center else None
        gamma = _parameter("gamma", tf.ones_initializer(), layer, trainable) if scale else None
        mean = _parameter("moving_mean", tf.zeros_initializer(), layer, False)
        variance = _parameter("moving_variance", tf.ones_initializer(), layer, False)
        outputs, updates = tf1_normalization.batch_normalization(
            inputs, axis, gamma, beta, mean, variance, epsilon, decay, is_training
        )
        if updates_collections is None:
            with tf.control_dependencies(updates):
                outputs = tf.identity(outputs)
        else:
            for update in updates:
                _collected(updates_collections, update)
        outputs.set_shape(inputs.shape)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return _collected(outputs_collections, outputs)


def _parameter(name, initializer, layer, trainable):
    return model_variable(
        name,
        shape=[layer["size"]],
        dtype=tf.float32,
        initializer=layer["initializers"].get(name, initializer),
        regularizer=layer["regularizers"].get(name),
        collections=_collections(layer["collections"], name),
        trainable=trainable,
    )


def _moment_norm(inputs, axes, shape, names, epsilon, center, scale, layer):
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
                collections=_collections(collections, name),
                trainable=trainable,
            )
            made[name] = tf.reshape(variable, shape) if shape is not None else variable
    outputs = tf.nn.batch_normalization(
        inputs, mean, variance, made.get("beta"), made.get("gamma"), epsilon
    )
    outputs.set_shape(inputs.shape)
    return outputs


def _activated(outputs, layer):
    if layer["activation_fn"] is not None:
        outputs = layer["activation_fn"](outputs)
    return _collected(layer["outputs_collections"], outputs)


@add_arg_scope
def layer_norm(
    inputs,
    center=True,
    scale=True,
    activation_fn=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    begin_norm_axis=1,
    begin_params_axis=-1,
    scope=None,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse):
        axes = list(range(begin_norm_axis % rank, rank))
        names = inputs.shape[begin_params_axis % rank :].as_list()
        # Half precision knows no number as small as the usual one.
        epsilon = 1e-3 if inputs.dtype == tf.float16 else 1e-12
        outputs = _moment_norm(inputs, axes, None, names, epsilon, center, scale, layer)
        return _activated(outputs, layer)


@add_arg_scope
def instance_norm(
    inputs,
    center=True,
    scale=True,
    epsilon=1e-6,
    activation_fn=None,
    param_initializers=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    data_format="NHWC",
    scope=None,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    channel = 1 if data_format == "NCHW" else rank - 1
    with tf.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse):
        size = _known(inputs, channel, "instance_norm")
        axes = [axis for axis in range(1, rank) if axis != channel]
        shape = [size if axis == channel else 1 for axis in range(rank)]
        outputs = _moment_norm(inputs, axes, shape, [size], epsilon, center, scale, layer)
        return _activated(outputs, layer)


@add_arg_scope
def group_norm(
    inputs,
    groups=32,
    channels_axis=-1,
    reduction_axes=(-3, -2),
    center=True,
    scale=True,
    epsilon=1e-6,
    activation_fn=None,
    param_initializers=None,
    reuse=None,
    variables_collections=None,
    outputs_collections=None,
    trainable=True,
    scope=None,
    mean_close_to_zero=False,
):
    layer = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    channel = channels_axis % rank
    size = _known(inputs, channel, "group_norm")
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
def unit_norm(inputs, dim, epsilon=1e-7, scope=None):
    with tf.variable_scope(scope, "UnitNorm", [inputs]):
        squares = tf.reduce_sum(tf.square(inputs), dim, keep_dims=True)
        return inputs / tf.sqrt(epsilon + squares)


def embed_sequence(
    ids,
    vocab_size=None,
    embed_dim=None,
    unique=False,
    initializer=None,
    regularizer=None,
    trainable=True,
    scope=None,
    reuse=None,
):
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError("Must specify vocab size and embedding dimension when not reusing. Got "
                         "vocab_size=%s and embed_dim=%s" % (vocab_size, embed_dim))
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


def embedding_lookup_unique(params, ids, partition_strategy="mod", name=None):
    """An embedding lookup that looks up each id once."""
    with tf.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        flat, places = tf.unique(tf.reshape(ids, [-1]))
        found = tf.gather(tf.nn.embedding_lookup(params, flat, partition_strategy), places)
        shape = tf.concat([tf.shape(ids), tf.shape(found)[1:]], 0)
        return tf.reshape(found, shape)


def repeat(inputs, repetitions, layer, *args, **kwargs):
    """The same layer several times, in scopes scope/scope_1, scope/scope_2 and so on."""
    scope = kwargs.pop("scope", None)
    with tf.variable_scope(scope, "Repeat", [inputs]):
        name = scope or getattr(layer, "__name__", "repeat")
        for number in range(1, repetitions + 1):
            inputs = layer(inputs, *args, scope="%s_%d" % (name, number), **kwargs)
        return inputs


def stack(inputs, layer, stack_args, **kwargs):
    """Layers on top of each other, each with its own arguments."""
    scope, reuse = kwargs.pop("scope", None), kwargs.pop("reuse", None)
    with tf.variable_scope(scope, "Stack", [inputs], reuse=reuse):
        name = scope or getattr(layer, "__name__", "stack")
        for number, given in enumerate(stack_args, 1):
            given = given if isinstance(given, (list, tuple)) else [given]
            inputs = layer(inputs, *given, scope="%s_%d" % (name, number), **kwargs)
        return inputs
