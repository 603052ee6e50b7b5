"""Of tf.contrib.learn, what prepares data; its estimators have no counterpart."""

import collections
import csv
import pickle
import re

import numpy

__all__ = ["CategoricalVocabulary", "Dataset", "Datasets", "ModeKeys", "VocabularyProcessor"]
__all__ += ["load_csv_with_header", "load_csv_without_header", "load_dataset", "tokenizer"]

Dataset = collections.namedtuple("Dataset", ["data", "target"])
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


class ModeKeys:
    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


def load_dataset(name, size="small", test_with_fake_data=False):
    """MNIST from the folder MNIST-data; the other sets came with TensorFlow 1 and are gone."""
    if name == "mnist":
        from whygpu_bootstrap.tf1 import mnist_data

        return mnist_data.load_mnist()
    raise ValueError(
        "The data set %r came with TensorFlow 1 and does not come with TensorFlow 2." % name
    )


def load_csv_with_header(filename, target_dtype, features_dtype, target_column=-1):
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


def load_csv_without_header(filename, target_dtype, features_dtype, target_column=-1):
    data, target = [], []
    with open(filename, newline="") as file:
        for row in csv.reader(file):
            target.append(row.pop(target_column))
            data.append(numpy.asarray(row, dtype=features_dtype))
    return Dataset(data=numpy.array(data), target=numpy.array(target, dtype=target_dtype))


_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator):
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Numbers for words; 0 is for the unknown ones."""

    def __init__(self, unknown_token="<UNK>", support_reverse=True):
        self._numbers = {unknown_token: 0}
        self._words = [unknown_token]
        self._counts = collections.Counter()
        self._frozen = False

    def __len__(self):
        return len(self._numbers)

    @property
    def _mapping(self):
        return self._numbers

    def freeze(self, freeze=True):
        self._frozen = freeze

    def get(self, category):
        if category not in self._numbers:
            if self._frozen:
                return 0
            self._numbers[category] = len(self._words)
            self._words.append(category)
        return self._numbers[category]

    def add(self, category, count=1):
        if self.get(category) > 0:
            self._counts[category] += count

    def trim(self, min_frequency, max_frequency=-1):
        """Keep the words that are frequent enough, the most frequent first."""
        words = sorted(sorted(self._counts), key=self._counts.get, reverse=True)
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

    def reverse(self, class_id):
        return self._words[class_id]


class VocabularyProcessor:
    """Texts as rows of word numbers, cut or filled up to one length."""

    def __init__(self, max_document_length, min_frequency=0, vocabulary=None, tokenizer_fn=None):
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents, unused_y=None):
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents, unused_y=None):
        raw_documents = list(raw_documents)
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents):
        for words in self._tokenizer(raw_documents):
            row = numpy.zeros(self.max_document_length, numpy.int64)
            for place, word in enumerate(words[: self.max_document_length]):
                row[place] = self.vocabulary_.get(word)
            yield row

    def reverse(self, documents):
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename):
        with open(filename, "wb") as file:
            pickle.dump(self, file)

    @classmethod
    def restore(cls, filename):
        with open(filename, "rb") as file:
            return pickle.load(file)
