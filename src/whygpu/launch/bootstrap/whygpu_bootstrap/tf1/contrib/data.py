"""Functions of tf.contrib.data that became methods of tf.data.Dataset."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["batch_and_drop_remainder", "padded_batch_and_drop_remainder", "read_batch_features"]

read_batch_features = tf.data.experimental.make_batched_features_dataset


def batch_and_drop_remainder(batch_size: "Any") -> "Callable[..., Any]":
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: "Any", padded_shapes: "Any", padding_values: "Any" = None
) -> "Callable[..., Any]":
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )
