"""tf.estimator.inputs: input functions over arrays and data frames."""

import tensorflow.compat.v1 as tf

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def numpy_input_fn(
    x, y=None, batch_size=128, num_epochs=1, shuffle=None, queue_capacity=1000, num_threads=1
):
    """Batches of an array, or of a dictionary of arrays, with labels where there are any."""
    if shuffle is None:
        raise ValueError("shuffle must be provided and explicitly set as boolean")

    def input_fn():
        parts = x if y is None else (x, y)
        dataset = tf.data.Dataset.from_tensor_slices(parts)
        if shuffle:
            dataset = dataset.shuffle(queue_capacity)
        dataset = dataset.repeat(num_epochs).batch(batch_size)
        iterator = tf.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    return input_fn


def pandas_input_fn(
    x,
    y=None,
    batch_size=128,
    num_epochs=1,
    shuffle=None,
    queue_capacity=1000,
    num_threads=1,
    target_column="target",
):
    """The same for a data frame and a series of labels."""
    columns = {name: x[name].values for name in x.columns}
    labels = None if y is None else y.values
    return numpy_input_fn(columns, labels, batch_size, num_epochs, shuffle, queue_capacity)
