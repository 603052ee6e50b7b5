"""tf.estimator.inputs: input functions over arrays and data frames."""

import numpy
import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["numpy_input_fn", "pandas_input_fn"]


def numpy_input_fn(
    x: "Any",
    y: "Any" = None,
    batch_size: "Any" = 128,
    num_epochs: "Any" = 1,
    shuffle: "Any" = None,
    queue_capacity: "Any" = 1000,
    num_threads: "Any" = 1,
) -> "Any":
    """Batches of an array, or of a dictionary of arrays, with labels where there are any."""
    if shuffle is None:
        raise ValueError("shuffle must be provided and explicitly set as boolean")

    def input_fn() -> "Any":
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


def _rows(arrays: "Any", rows: "Any", parts: "Any") -> "Any":
    """Taken from the arrays while the graph runs: in it, they would be written to every log."""
    kinds = [tf.as_dtype(_kind(array)) for array in arrays]
    taken = tf.numpy_function(lambda chosen: [_plain(a[chosen]) for a in arrays], [rows], kinds)
    for tensor, array in zip(taken, arrays):
        tensor.set_shape((None,) + array.shape[1:])
    return tf.nest.pack_sequence_as(parts, taken)


def _kind(array: "Any") -> "Any":
    return "string" if array.dtype.kind in "OSU" else array.dtype


def _plain(array: "Any") -> "Any":
    return array.astype(object) if array.dtype.kind == "U" else array


def pandas_input_fn(
    x: "Any",
    y: "Any" = None,
    batch_size: "Any" = 128,
    num_epochs: "Any" = 1,
    shuffle: "Any" = None,
    queue_capacity: "Any" = 1000,
    num_threads: "Any" = 1,
    target_column: str = "target",
) -> "Any":
    """The same for a data frame and a series of labels."""
    columns = {name: x[name].values for name in x.columns}
    labels = None if y is None else y.values
    return numpy_input_fn(columns, labels, batch_size, num_epochs, shuffle, queue_capacity)
