"""slim.dataset and its readers: files of records, read by queues and decoded into tensors."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DataDecoder", "DataProvider", "Dataset", "DatasetDataProvider", "get_data_files"]
__all__ += ["parallel_read", "prefetch_queue", "single_pass_read"]


class Dataset:
    """Where the records are, what reads them and what decodes them."""

    def __init__(
        self,
        data_sources: "Any",
        reader: "Any",
        decoder: "Any",
        num_samples: "Any",
        items_to_descriptions: "Any",
        **kwargs: "Any",
    ) -> None:
        self.data_sources = data_sources
        self.reader = reader
        self.decoder = decoder
        self.num_samples = num_samples
        self.items_to_descriptions = items_to_descriptions
        vars(self).update(kwargs)


class DataDecoder:
    """A record as a list of tensors."""

    def decode(self, data: "Any", items: "Any") -> "Any":
        raise NotImplementedError

    def list_items(self) -> "Any":
        raise NotImplementedError


class DataProvider:
    """Tensors by the name of the item that they hold."""

    def __init__(self, items_to_tensors: "Any", num_samples: "Any") -> None:
        self._items_to_tensors = items_to_tensors
        self._num_samples = num_samples

    def get(self, items: "Any") -> "list[Any]":
        for item in items:
            if item not in self._items_to_tensors:
                raise ValueError("Item [%s] is not among %s" % (item, self.list_items()))
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> "Any":
        return self._items_to_tensors.keys()

    def num_samples(self) -> "Any":
        return self._num_samples


class DatasetDataProvider(DataProvider):
    """The items of one record of a data set; every run of the graph reads another record."""

    def __init__(
        self,
        dataset: "Any",
        num_readers: int = 1,
        reader_kwargs: "Any" = None,
        shuffle: bool = True,
        num_epochs: "Any" = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: "Any" = None,
        scope: "Any" = None,
    ) -> None:
        key, record = parallel_read(
            dataset.data_sources,
            dataset.reader,
            num_epochs,
            num_readers,
            reader_kwargs,
            shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = list(dataset.decoder.list_items())
        tensors = dict(zip(items, dataset.decoder.decode(record, items)))
        if record_key in tensors:
            raise ValueError("record_key is the name of an item: %s" % record_key)
        tensors[record_key] = key
        super().__init__(tensors, dataset.num_samples)


def get_data_files(data_sources: "Any") -> "list[Any]":
    """The files of a pattern, or of several."""
    if isinstance(data_sources, (list, tuple)):
        return [file for source in data_sources for file in get_data_files(source)]
    if not any(letter in data_sources for letter in "*?["):
        return [data_sources]
    files = tf.gfile.Glob(data_sources)
    if not files:
        raise ValueError("No data files found in %s" % (data_sources,))
    return list(files)


def parallel_read(
    data_sources: "Any",
    reader_class: "Any",
    num_epochs: "Any" = None,
    num_readers: int = 4,
    reader_kwargs: "Any" = None,
    shuffle: bool = True,
    dtypes: "Any" = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: "Any" = None,
    scope: "Any" = None,
) -> "Any":
    """The key and the value of a record, from several readers that fill one queue."""
    kinds = dtypes or [tf.string, tf.string]
    with tf.name_scope(scope, "parallel_read"):
        files = tf.train.string_input_producer(
            get_data_files(data_sources), num_epochs=num_epochs, shuffle=shuffle, seed=seed
        )
        if shuffle:
            queue = tf.RandomShuffleQueue(
                capacity, min_after_dequeue, dtypes=kinds, seed=seed, name="common_queue"
            )
        else:
            queue = tf.FIFOQueue(capacity, dtypes=kinds, name="common_queue")
        readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        fill = [queue.enqueue(reader.read(files)) for reader in readers]
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, fill))
        fullness = tf.cast(queue.size(), tf.float32) / capacity
        tf.summary.scalar("fraction_of_%d_full" % capacity, fullness)
        return queue.dequeue()


def single_pass_read(
    data_sources: "Any", reader_class: "Any", reader_kwargs: "Any" = None, scope: "Any" = None
) -> "Any":
    with tf.name_scope(scope, "single_pass_read"):
        files = tf.train.string_input_producer(
            get_data_files(data_sources), num_epochs=1, shuffle=False, capacity=1
        )
        return reader_class(**(reader_kwargs or {})).read(files)


def prefetch_queue(
    tensors: "Any",
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: "Any" = None,
    name: "Any" = None,
) -> "Any":
    """A queue that keeps some of the tensors' values ready; it gives them back as they were."""
    named = tensors if isinstance(tensors, dict) else None
    values = [tensors[key] for key in sorted(tensors)] if named is not None else list(tensors)
    with tf.name_scope(name, "prefetch_queue", values):
        kind = tf.PaddingFIFOQueue if dynamic_pad else tf.FIFOQueue
        queue = kind(
            capacity=capacity,
            dtypes=[value.dtype for value in values],
            shapes=[value.shape for value in values],
            names=sorted(tensors) if named is not None else None,
            shared_name=shared_name,
        )
        filling = [queue.enqueue(tensors if named is not None else values)] * num_threads
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, filling))
        fullness = tf.cast(queue.size(), tf.float32) / capacity
        tf.summary.scalar("fraction_of_%d_full" % capacity, fullness)
        return queue
