"""tf.estimator.inputs: input functions over arrays and data frames."""

import numpy
import tensorflow.compat.v1 as tf

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def numpy_input_fn(
    x, y=None, batch_size=128, num_epochs=1, shuffle=None, queue_capacity=1000, num_threads=1
):
    """Batches of an array, or of a dictionary of arrays, with labels where there are any."""
    if shuffle is None:
        raise ValueError("shuffle must be provided and explicitly set as boolean")

    def input_fn():
        parts = {"x": x} if y is None else {"x": x, "y": y}
        arrays = [numpy.asarray(array) for array in tf.nest.flatten(parts)]
        dataset = tf.data.Dataset.range(len(arrays[0]))
        if shuffle:
            dataset = dataset.shuffle(queue_capacity)
        dataset = dataset.repeat(num_epochs).batch(batch_size)
        dataset = dataset.map(lambda rows: _rows(arrays, rows, parts))
        iterator = tf.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        batch = iterator.get_next()
        return batch["x"] if y is None else (batch["x"], batch["y"])

    return input_fn


def _rows(arrays, rows, parts):
    """Taken from the arrays while the graph runs: in it, they would be written to every log."""
    kinds = [tf.as_dtype(_kind(array)) for array in arrays]
    taken = tf.numpy_function(lambda chosen: [_plain(a[chosen]) for a in arrays], [rows], kinds)
    for tensor, array in zip(taken, arrays):
        tensor.set_shape((None,) + array.shape[1:])
    return tf.nest.pack_sequence_as(parts, taken)


def _kind(array):
    return "string" if array.dtype.kind in "OSU" else array.dtype


def _plain(array):
    return array.astype(object) if array.dtype.kind == "U" else array


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
