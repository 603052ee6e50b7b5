"""tensorflow.examples.tutorials.mnist.input_data: MNIST from the four files in a folder.

Nothing is downloaded: if a file is missing, the error says which, and where to put it.
"""

import collections
import gzip
import os
import struct

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DataSet", "Datasets", "extract_images", "extract_labels", "load_mnist"]
__all__ += ["dense_to_one_hot", "maybe_download", "read_data_sets"]

FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_IMAGES = 2051
_LABELS = 2049

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


def read_data_sets(
    train_dir: "Any",
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: "Any" = numpy.float32,
    reshape: bool = True,
    validation_size: "Any" = 5000,
    seed: "Any" = None,
    source_url: "Any" = None,
) -> "Any":
    """Training, validation and test set."""
    if fake_data:
        sets = [DataSet([], [], True, one_hot, dtype, seed=seed) for _ in Datasets._fields]
        return Datasets(*sets)
    paths = [_find(train_dir, name) for name in FILES]
    images, labels, test_images, test_labels = (
        _read(path, one_hot, "images" in name) for path, name in zip(paths, FILES)
    )
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            "Validation size should be between 0 and %d. Received: %d."
            % (len(images), validation_size)
        )
    options = {"dtype": dtype, "reshape": reshape, "seed": seed}
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **options),
        validation=DataSet(images[:validation_size], labels[:validation_size], **options),
        test=DataSet(test_images, test_labels, **options),
    )


def load_mnist(train_dir: str = "MNIST-data") -> "Any":
    return read_data_sets(train_dir)


def maybe_download(filename: str, work_directory: "Any", source_url: "Any" = None) -> "Any":
    """The path of a file that is there already."""
    return _find(work_directory, filename)


def _find(folder: str, name: "Any") -> "Any":
    for candidate in (name, name[: -len(".gz")]):
        path = os.path.join(folder, candidate)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(
        "MNIST: %s is not in %s. TensorFlow 1 downloaded it; under --tf1 nothing is downloaded. "
        "Put the four files %s (packed or unpacked) there."
        % (name, os.path.abspath(folder), ", ".join(FILES))
    )


def _read(path: str, one_hot: "Any", is_images: "Any") -> "Any":
    packed = path.endswith(".gz")
    with gzip.open(path, "rb") if packed else open(path, "rb") as file:
        return extract_images(file) if is_images else extract_labels(file, one_hot)


def extract_images(f: "Any") -> "Any":
    """[count, rows, columns, 1] of bytes, from an open idx file."""
    _, count, rows, columns = _header(f, _IMAGES, 4)
    return _content(f, count * rows * columns).reshape(count, rows, columns, 1)


def extract_labels(f: "Any", one_hot: bool = False, num_classes: "Any" = 10) -> "Any":
    """[count] of bytes, or [count, num_classes] of 0 and 1, from an open idx file."""
    _, count = _header(f, _LABELS, 2)
    labels = _content(f, count)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def _header(file: "Any", magic: "Any", size: "Any") -> "Any":
    numbers = struct.unpack(">%dI" % size, _exactly(file, 4 * size))
    if numbers[0] != magic:
        raise ValueError(
            "Invalid magic number %d in MNIST file: %s; expected %d"
            % (numbers[0], getattr(file, "name", file), magic)
        )
    return numbers


def _content(file: "Any", size: "Any") -> "Any":
    return numpy.frombuffer(_exactly(file, size), dtype=numpy.uint8)


def _exactly(file: "Any", size: "Any") -> "Any":
    content = file.read(size)
    if len(content) != size:
        raise ValueError(
            "the MNIST file %s ends after %d of the %d bytes that its header announces"
            % (getattr(file, "name", file), len(content), size)
        )
    return content


def dense_to_one_hot(labels_dense: "Any", num_classes: "Any") -> "Any":
    result = numpy.zeros((len(labels_dense), num_classes))
    result[numpy.arange(len(labels_dense)), numpy.asarray(labels_dense).ravel()] = 1
    return result


class DataSet:
    """Images with labels, handed out in batches, newly shuffled for each epoch."""

    def __init__(
        self,
        images: "Any",
        labels: "Any",
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: "Any" = numpy.float32,
        reshape: bool = True,
        seed: "Any" = None,
    ) -> None:
        dtype = numpy.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if dtype not in (numpy.dtype("uint8"), numpy.dtype("float32")):
            raise TypeError("Invalid image dtype %r, expected uint8 or float32" % dtype)
        self._random = numpy.random.RandomState(seed)
        self._fake = fake_data
        self._one_hot = one_hot
        if fake_data:
            self._images = self._labels = numpy.zeros([10000])
        else:
            self._images, self._labels = _prepared(images, dtype, reshape), labels
            if len(images) != len(labels):
                raise ValueError("%d images and %d labels" % (len(images), len(labels)))
        self._epochs_completed = 0
        self._position = 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: len(self._images))
    epochs_completed = property(lambda self: self._epochs_completed)

    def next_batch(
        self, batch_size: "Any", fake_data: bool = False, shuffle: bool = True
    ) -> "tuple[Any, ...]":
        """The next images and labels; a batch may reach over the end of an epoch."""
        if fake_data or self._fake:
            label = [1] + [0] * 9 if self._one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        if self._position == 0 and self._epochs_completed == 0 and shuffle:
            self._shuffle()
        images, labels = self._take(batch_size)
        while len(images) < batch_size and self.num_examples:
            self._epochs_completed += 1
            self._position = 0
            if shuffle:
                self._shuffle()
            more_images, more_labels = self._take(batch_size - len(images))
            images = numpy.concatenate([images, more_images])
            labels = numpy.concatenate([labels, more_labels])
        return images, labels

    def _take(self, size: "Any") -> "tuple[Any, Any]":
        end = min(self._position + size, self.num_examples)
        part = slice(self._position, end)
        self._position = end
        return self._images[part], self._labels[part]

    def _shuffle(self) -> None:
        order = self._random.permutation(self.num_examples)
        self._images = self._images[order]
        self._labels = self._labels[order]


def _prepared(images: "Any", dtype: "Any", reshape: "Any") -> "Any":
    if reshape:
        images = images.reshape(len(images), -1)
    if dtype == numpy.float32:
        images = numpy.multiply(images.astype(numpy.float32), 1.0 / 255.0)
    return images
