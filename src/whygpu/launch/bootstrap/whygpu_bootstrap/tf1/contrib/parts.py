"""Initializers, regularizers and small helpers of tf.contrib.layers."""

import numbers

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "apply_regularization",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "one_hot_encoding",
    "optimize_loss",
    "sum_regularizer",
    "summarize_activation",
    "summarize_activations",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "variance_scaling_initializer",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]

OPTIMIZERS = {
    "Adagrad": tf.train.AdagradOptimizer,
    "Adam": tf.train.AdamOptimizer,
    "Ftrl": tf.train.FtrlOptimizer,
    "Momentum": lambda rate: tf.train.MomentumOptimizer(rate, momentum=0.9),
    "RMSProp": tf.train.RMSPropOptimizer,
    "SGD": tf.train.GradientDescentOptimizer,
}


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: "Any" = None,
    dtype: "Any" = tf.float32,
) -> "Any":
    """Random values whose variance is factor / n, n being the number of inputs or outputs."""
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError("Unknown mode %s [FAN_IN, FAN_OUT, FAN_AVG]" % mode)
    default_dtype = dtype

    def initializer(shape: "Any", dtype: "Any" = None, partition_info: "Any" = None) -> "Any":
        dtype = default_dtype if dtype is None else dtype
        whole = partition_info.full_shape if partition_info is not None else shape
        n = _fan([float(size) for size in whole], mode)
        if uniform:
            limit = (3.0 * factor / n) ** 0.5
            return tf.random_uniform(shape, -limit, limit, dtype, seed=seed)
        # Truncating the normal distribution at two deviations reduces its variance by this factor.
        deviation = (1.3 * factor / n) ** 0.5
        return tf.truncated_normal(shape, 0.0, deviation, dtype, seed=seed)

    return initializer


def _fan(shape: "Any", mode: "Any") -> "Any":
    fan_in = shape[-2] if len(shape) > 1 else shape[-1]
    fan_out = shape[-1]
    for size in shape[:-2]:
        fan_in *= size
        fan_out *= size
    if mode == "FAN_IN":
        return fan_in
    return fan_out if mode == "FAN_OUT" else (fan_in + fan_out) / 2.0


def xavier_initializer(
    uniform: bool = True, seed: "Any" = None, dtype: "Any" = tf.float32
) -> "Any":
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def _checked(scale: "Any", name: "Any") -> "Any":
    if isinstance(scale, numbers.Integral):
        raise ValueError("%s cannot be an integer: %s" % (name, scale))
    if isinstance(scale, numbers.Real) and scale < 0.0:
        raise ValueError("Setting a %s less than 0 on a regularizer: %g" % (name, scale))
    return scale


def l1_regularizer(scale: "Any", scope: "Any" = None) -> "Any":
    scale = _checked(scale, "scale")

    def l1(weights: "Any", name: "Any" = None) -> "Any":
        with tf.name_scope(scope, "l1_regularizer", [weights]) as name:
            return tf.multiply(
                tf.cast(scale, weights.dtype.base_dtype), tf.reduce_sum(tf.abs(weights)), name=name
            )

    return _or_nothing(scale, l1)


def l2_regularizer(scale: "Any", scope: "Any" = None) -> "Any":
    scale = _checked(scale, "scale")

    def l2(weights: "Any") -> "Any":
        with tf.name_scope(scope, "l2_regularizer", [weights]) as name:
            return tf.multiply(
                tf.cast(scale, weights.dtype.base_dtype), tf.nn.l2_loss(weights), name=name
            )

    return _or_nothing(scale, l2)


def _or_nothing(scale: "Any", regularizer: "Any") -> "Any":
    if isinstance(scale, numbers.Real) and scale == 0.0:
        return lambda weights, name=None: None
    return regularizer


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: "Any" = None) -> "Any":
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope=scope)


def sum_regularizer(regularizer_list: "Any", scope: "Any" = None) -> "Any":
    regularizers = [regularizer for regularizer in regularizer_list if regularizer is not None]
    if not regularizers:
        return None

    def total(weights: "Any") -> "Any":
        with tf.name_scope(scope, "sum_regularizer", [weights]) as name:
            losses = [regularizer(weights) for regularizer in regularizers]
            losses = [loss for loss in losses if loss is not None]
            return tf.add_n(losses, name=name) if losses else None

    return total


def apply_regularization(regularizer: "Any", weights_list: "Any" = None) -> "Any":
    """The sum of the regularizer over the weights, kept among the regularization losses."""
    if not weights_list:
        weights_list = tf.get_collection(tf.GraphKeys.WEIGHTS)
    if not weights_list:
        raise ValueError("No weights to regularize.")
    with tf.name_scope("get_regularization_penalty", values=weights_list) as name:
        losses = [regularizer(weights) for weights in weights_list]
        losses = [loss if loss is not None else tf.constant(0.0) for loss in losses]
        total = tf.add_n(losses, name=name)
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, total)
        return total


def one_hot_encoding(
    labels: "Any",
    num_classes: "Any",
    on_value: float = 1.0,
    off_value: float = 0.0,
    scope: "Any" = None,
) -> "Any":
    with tf.name_scope(scope, "OneHotEncoding", [labels, num_classes]):
        return tf.one_hot(tf.cast(labels, tf.int64), num_classes, on_value, off_value)


def summarize_tensor(tensor: "Any", tag: "Any" = None) -> "Any":
    name = tag or tensor.op.name
    if tensor.shape.ndims == 0:
        return tf.summary.scalar(name, tensor)
    return tf.summary.histogram(name, tensor)


def summarize_activation(op: "Any") -> "Any":
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        fraction = tf.nn.zero_fraction(op)
        tf.summary.scalar("%s/zeros" % op.op.name, fraction)
    return tf.summary.histogram("%s/activation" % op.op.name, op)


def summarize_tensors(tensors: "Any", summarizer: "Any" = summarize_tensor) -> "list[Any]":
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: "Any", name_filter: "Any" = None, summarizer: "Any" = summarize_tensor
) -> "Any":
    return summarize_tensors(tf.get_collection(collection, name_filter), summarizer)


def summarize_activations(
    name_filter: "Any" = None, summarizer: "Any" = summarize_activation
) -> "Any":
    return summarize_collection(tf.GraphKeys.ACTIVATIONS, name_filter, summarizer)


def optimize_loss(
    loss: "Any",
    global_step: "Any",
    learning_rate: "Any",
    optimizer: "Any",
    gradient_noise_scale: "Any" = None,
    gradient_multipliers: "Any" = None,
    clip_gradients: "Any" = None,
    learning_rate_decay_fn: "Any" = None,
    update_ops: "Any" = None,
    variables: "Any" = None,
    name: "Any" = None,
    summaries: "Any" = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> "Any":
    """Train on a loss, with the updates that layers have asked for; gives the loss back."""
    if gradient_noise_scale is not None or gradient_multipliers is not None:
        raise NotImplementedError(
            "optimize_loss under --tf1 has neither gradient_noise_scale nor gradient_multipliers"
        )
    if global_step is None:
        global_step = tf.train.get_global_step()
    with tf.variable_scope(name, "OptimizeLoss", [loss, global_step]):
        if update_ops is None:
            update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(list(update_ops)):
            loss = tf.identity(loss)
        rate = learning_rate
        if learning_rate_decay_fn is not None:
            rate = learning_rate_decay_fn(learning_rate, global_step)
        trainer = _optimizer(optimizer, rate)
        gradients = trainer.compute_gradients(
            loss,
            variables or tf.trainable_variables(),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        step = global_step if increment_global_step else None
        train = trainer.apply_gradients(_clipped(gradients, clip_gradients), step, name="train")
        with tf.control_dependencies([train]):
            return tf.identity(loss)


def _optimizer(optimizer: "Any", rate: "Any") -> "Any":
    if isinstance(optimizer, str):
        if optimizer not in OPTIMIZERS:
            known = ", ".join(sorted(OPTIMIZERS))
            raise ValueError(
                "Optimizer name should be one of [%s], you provided %s." % (known, optimizer)
            )
        return OPTIMIZERS[optimizer](rate)
    if isinstance(optimizer, tf.train.Optimizer):
        return optimizer
    return optimizer(rate) if rate is not None else optimizer()


def _clipped(gradients: "Any", clip: "Any") -> "Any":
    if clip is None:
        return gradients
    if callable(clip):
        return clip(gradients)
    values, variables = zip(*gradients)
    clipped, _ = tf.clip_by_global_norm(values, clip)
    return list(zip(clipped, variables))
