"""The losses of tf.contrib.losses and slim.losses: tf.losses with predictions before labels."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance"]
__all__ += ["get_losses", "get_regularization_losses", "get_total_loss", "hinge_loss", "log_loss"]
__all__ += ["mean_squared_error", "sigmoid_cross_entropy"]
__all__ += ["softmax_cross_entropy", "sparse_softmax_cross_entropy"]

add_loss = tf.losses.add_loss
get_losses = tf.losses.get_losses
get_regularization_losses = tf.losses.get_regularization_losses
get_total_loss = tf.losses.get_total_loss


def compute_weighted_loss(losses: "Any", weights: "Any" = 1.0, scope: "Any" = None) -> "Any":
    return tf.losses.compute_weighted_loss(losses, weights, scope=scope)


def absolute_difference(
    predictions: "Any", labels: "Any" = None, weights: "Any" = 1.0, scope: "Any" = None
) -> "Any":
    return tf.losses.absolute_difference(labels, predictions, weights, scope)


def sigmoid_cross_entropy(
    logits: "Any",
    multi_class_labels: "Any",
    weights: "Any" = 1.0,
    label_smoothing: "Any" = 0,
    scope: "Any" = None,
) -> "Any":
    return tf.losses.sigmoid_cross_entropy(
        multi_class_labels, logits, weights, label_smoothing, scope
    )


def softmax_cross_entropy(
    logits: "Any",
    onehot_labels: "Any",
    weights: "Any" = 1.0,
    label_smoothing: "Any" = 0,
    scope: "Any" = None,
) -> "Any":
    return tf.losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(
    logits: "Any", labels: "Any", weights: "Any" = 1.0, scope: "Any" = None
) -> "Any":
    return tf.losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)


def log_loss(
    predictions: "Any",
    labels: "Any" = None,
    weights: "Any" = 1.0,
    epsilon: float = 1e-7,
    scope: "Any" = None,
) -> "Any":
    return tf.losses.log_loss(labels, predictions, weights, epsilon, scope)


def hinge_loss(logits: "Any", labels: "Any" = None, scope: "Any" = None) -> "Any":
    """The loss of each element; unlike the others, it is neither summed up nor collected."""
    with tf.name_scope(scope, "hinge_loss", [logits, labels]):
        signs = 2 * tf.cast(labels, tf.float32) - 1
        return tf.nn.relu(1 - signs * logits)


def mean_squared_error(
    predictions: "Any", labels: "Any" = None, weights: "Any" = 1.0, scope: "Any" = None
) -> "Any":
    return tf.losses.mean_squared_error(labels, predictions, weights, scope)


def cosine_distance(
    predictions: "Any",
    labels: "Any" = None,
    axis: "Any" = None,
    weights: "Any" = 1.0,
    scope: "Any" = None,
    dim: "Any" = None,
) -> "Any":
    axis = dim if axis is None else axis
    return tf.losses.cosine_distance(labels, predictions, axis, weights, scope)
