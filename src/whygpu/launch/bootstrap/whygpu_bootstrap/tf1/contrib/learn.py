"""Data preparation of tf.contrib.learn."""

import collections
import csv
import pickle
import re

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = ["CategoricalVocabulary", "Dataset", "Datasets", "ModeKeys", "VocabularyProcessor"]
__all__ += ["load_csv_with_header", "load_csv_without_header", "load_dataset", "tokenizer"]

Dataset = collections.namedtuple("Dataset", ["data", "target"])
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


class ModeKeys:
    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


def load_dataset(name: "Any", size: str = "small", test_with_fake_data: bool = False) -> "Any":
    """MNIST from the folder MNIST-data; the other sets came with TensorFlow 1 and are gone."""
    if name == "mnist":
        from whygpu_bootstrap.tf1 import mnist_data

        return mnist_data.load_mnist()
    raise ValueError(
        "The data set %r came with TensorFlow 1 and does not come with TensorFlow 2." % name
    )


def load_csv_with_header(
    filename: str, target_dtype: "Any", features_dtype: "Any", target_column: "Any" = -1
) -> "Any":
    """A file whose first line says how many rows and columns follow."""
    with open(filename, newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        count, width = int(header[0]), int(header[1])
        data = numpy.zeros((count, width), dtype=features_dtype)
        target = numpy.zeros((count,), dtype=target_dtype)
        for number, row in enumerate(rows):
            target[number] = numpy.asarray(row.pop(target_column), dtype=target_dtype)
            data[number] = numpy.asarray(row, dtype=features_dtype)
    return Dataset(data=data, target=target)


def load_csv_without_header(
    filename: str, target_dtype: "Any", features_dtype: "Any", target_column: "Any" = -1
) -> "Any":
    data, target = [], []
    with open(filename, newline="") as file:
        for row in csv.reader(file):
            target.append(row.pop(target_column))
            data.append(numpy.asarray(row, dtype=features_dtype))
    return Dataset(data=numpy.array(data), target=numpy.array(target, dtype=target_dtype))


_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: "Any") -> "Iterator[Any]":
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Numbers for words; 0 is for the unknown ones."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._numbers = {unknown_token: 0}
        self._words = [unknown_token]
        self._counts: "Any" = collections.Counter()
        self._frozen = False

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def _mapping(self) -> "Any":
        return self._numbers

    def freeze(self, freeze: bool = True) -> None:
        self._frozen = freeze

    def get(self, category: "Any") -> "Any":
        if category not in self._numbers:
            if self._frozen:
                return 0
            self._numbers[category] = len(self._words)
            self._words.append(category)
        return self._numbers[category]

    def add(self, category: "Any", count: "Any" = 1) -> None:
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency: "Any", max_frequency: "Any" = -1) -> None:
        """Keep the words that are frequent enough, the most frequent first."""
        words = sorted(sorted(self._counts), key=lambda word: self._counts[word], reverse=True)
        highest = max_frequency if max_frequency > 0 else None
        kept = [
            word
            for word in words
            if self._counts[word] > min_frequency
            and (highest is None or self._counts[word] < highest)
        ]
        self._words = self._words[:1] + kept
        self._numbers = {word: number for number, word in enumerate(self._words)}
        self._counts = collections.Counter({word: self._counts[word] for word in kept})

    def reverse(self, class_id: "Any") -> "Any":
        return self._words[class_id]


class VocabularyProcessor:
    """Texts as rows of word numbers, cut or filled up to one length."""

    def __init__(
        self,
        max_document_length: "Any",
        min_frequency: "Any" = 0,
        vocabulary: "Any" = None,
        tokenizer_fn: "Any" = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: "Any", unused_y: "Any" = None) -> "Any":
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: "Any", unused_y: "Any" = None) -> "Any":
        raw_documents = list(raw_documents)
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: "Any") -> "Iterator[Any]":
        for words in self._tokenizer(raw_documents):
            row = numpy.zeros(self.max_document_length, numpy.int64)
            for place, word in enumerate(words[: self.max_document_length]):
                row[place] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents: "Any") -> "Iterator[Any]":
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename: str) -> None:
        with open(filename, "wb") as file:
            pickle.dump(self, file)

    @classmethod
    def restore(cls, filename: str) -> "Any":
        with open(filename, "rb") as file:
            return pickle.load(file)
