"""Of tf.contrib.data, what became a method of tf.data.Dataset."""

import tensorflow.compat.v1 as tf

__all__ = ["batch_and_drop_remainder", "padded_batch_and_drop_remainder", "read_batch_features"]

read_batch_features = tf.data.experimental.make_batched_features_dataset


def batch_and_drop_remainder(batch_size):
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size, padded_shapes, padding_values=None):
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )
