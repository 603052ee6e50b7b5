"""The metrics of tf.contrib.metrics and slim.metrics: tf.metrics with predictions before labels."""

import functools

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["accuracy", "aggregate_metric_map", "aggregate_metrics", "confusion_matrix"]
__all__ += ["streaming_mean", "streaming_mean_tensor", "streaming_percentage_less"]
__all__ += ["streaming_recall_at_k"]

confusion_matrix = tf.math.confusion_matrix
streaming_mean = tf.metrics.mean
streaming_mean_tensor = tf.metrics.mean_tensor
streaming_percentage_less = tf.metrics.percentage_below


def accuracy(predictions: "Any", labels: "Any", weights: "Any" = None, name: "Any" = None) -> "Any":
    """The share of right predictions."""
    with tf.name_scope(name, "accuracy", [predictions, labels]):
        right = tf.cast(tf.equal(predictions, labels), tf.float32)
        if weights is None:
            return tf.reduce_mean(right)
        return tf.reduce_sum(right * weights) / tf.reduce_sum(weights)


def aggregate_metrics(*value_update_tuples: "Any") -> "tuple[list[Any], list[Any]]":
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: "Any") -> "tuple[dict[Any, Any], dict[Any, Any]]":
    """Two dictionaries by name: the values, and the operations that update them."""
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}


def streaming_recall_at_k(
    predictions: "Any",
    labels: "Any",
    k: "Any",
    weights: "Any" = None,
    metrics_collections: "Any" = None,
    updates_collections: "Any" = None,
    name: "Any" = None,
) -> "Any":
    found = tf.cast(tf.nn.in_top_k(predictions, labels, k), tf.float32)
    return tf.metrics.mean(
        found, weights, metrics_collections, updates_collections, name or "recall_at_%d" % k
    )


def _swapped(metric: "Any") -> "Any":
    """A metric of tf.metrics that takes its first two arguments in the other order."""

    @functools.wraps(metric)
    def streaming(predictions: "Any", labels: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        return metric(labels, predictions, *args, **kwargs)

    return streaming


_SWAPPED = (
    "accuracy",
    "auc",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_relative_error",
    "mean_squared_error",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "root_mean_squared_error",
    "sensitivity_at_specificity",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
)
"""Metrics whose other arguments have the same order in both."""

for _name in _SWAPPED:
    globals()["streaming_" + _name] = _swapped(getattr(tf.metrics, _name))
    __all__.append("streaming_" + _name)
