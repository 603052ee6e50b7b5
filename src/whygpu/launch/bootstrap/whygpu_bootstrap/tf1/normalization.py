"""Batch normalization as an operation on given variables; the layers of TensorFlow 1 rest on it."""

import tensorflow.compat.v1 as tf
from tensorflow.python.training import moving_averages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def batch_normalization(
    x: "Any",
    axis: "Any",
    gamma: "Any",
    beta: "Any",
    moving_mean: "Any",
    moving_variance: "Any",
    epsilon: "Any",
    momentum: "Any",
    training: "Any",
    zero_debias: bool = False,
) -> "tuple[Any, ...]":
    """The normalized x, and the operations that move the averages (none when not training).

    `training` may be a Python value or a tensor; gamma and beta may be None. `zero_debias`: the
    average of the means is corrected for its start at zero.
    """
    rank = x.shape.ndims
    axis = axis % rank
    if rank == 4 and axis in (1, 3):
        learning, known = _fused(x, axis, gamma, beta, moving_mean, moving_variance, epsilon)
    else:
        learning, known = _plain(x, axis, gamma, beta, moving_mean, moving_variance, epsilon)
    fixed = constant(training)
    if fixed is not None and not fixed:
        return known(), []
    if fixed:
        y, mean, variance = learning()
        share = 1.0 - momentum
    elif zero_debias:
        raise NotImplementedError(
            "zero_debias_moving_mean under --tf1 needs is_training as a Python value"
        )
    else:
        no_change = (moving_mean, moving_variance)
        y, mean, variance = tf.cond(
            tf.cast(training, tf.bool),
            learning,
            lambda: (known(),) + tuple(tf.identity(value) for value in no_change),
        )
        share = 1.0 - momentum
    if zero_debias:
        moved = moving_averages.assign_moving_average(moving_mean, mean, momentum, zero_debias=True)
    else:
        moved = _move(moving_mean, mean, share)
    return y, [moved, _move(moving_variance, variance, share)]


def constant(training: "Any") -> "Any":
    """The value of a flag in Python; None if only the running graph knows it."""
    if tf.is_tensor(training):
        training = tf.get_static_value(training)
        return None if training is None else bool(training)
    if isinstance(training, tf.Variable):
        return None
    return bool(training)


def _fused(
    x: "Any",
    axis: "Any",
    gamma: "Any",
    beta: "Any",
    moving_mean: "Any",
    moving_variance: "Any",
    epsilon: "Any",
) -> "tuple[Any, Any]":
    size = x.shape.dims[axis].value
    scale = tf.ones([size], tf.float32) if gamma is None else gamma
    offset = tf.zeros([size], tf.float32) if beta is None else beta
    layout = "NCHW" if axis == 1 else "NHWC"

    def learning() -> "Any":
        return tf.nn.fused_batch_norm(
            x, scale, offset, epsilon=epsilon, data_format=layout, is_training=True
        )

    def known() -> "Any":
        return tf.nn.fused_batch_norm(
            x,
            scale,
            offset,
            mean=moving_mean,
            variance=moving_variance,
            epsilon=epsilon,
            data_format=layout,
            is_training=False,
        )[0]

    return learning, known


def _plain(
    x: "Any",
    axis: "Any",
    gamma: "Any",
    beta: "Any",
    moving_mean: "Any",
    moving_variance: "Any",
    epsilon: "Any",
) -> "tuple[Any, Any]":
    rank = x.shape.ndims
    others = [index for index in range(rank) if index != axis]
    shape = [1] * rank
    shape[axis] = x.shape.dims[axis].value

    def fit(value: "Any") -> "Any":
        if value is None or axis == rank - 1:
            return value
        return tf.reshape(value, shape)

    def normalized(mean: "Any", variance: "Any") -> "Any":
        return tf.nn.batch_normalization(
            x, fit(mean), fit(variance), fit(beta), fit(gamma), epsilon
        )

    def learning() -> "tuple[Any, Any, Any]":
        mean, variance = tf.nn.moments(x, others)
        return normalized(mean, variance), mean, variance

    def known() -> "Any":
        return normalized(moving_mean, moving_variance)

    return learning, known


def _move(average: "Any", value: "Any", share: "Any") -> "Any":
    change = (average - tf.cast(value, average.dtype.base_dtype)) * share
    return tf.assign_sub(average, change, name="AssignMovingAvg")
