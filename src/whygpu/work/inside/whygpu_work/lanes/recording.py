"""Arrays of one run on disk, in order, with their metadata: lanes write them, comparing reads them.

A folder with `manifest.json` and one `.npy` file for each array:

    {"tensors": [{"name", "kind", "dtype", "file", "rounding"}, ...],
     "steps": [{"name", "kind", "outputs", "precision", "settings", "weights"}, ...]}

`kind` of a tensor is one of whygpu.model.comparison.TensorKind, of a step the class of the layer.
A step is one call of one layer; `outputs` are names of tensors. `rounding` is null except in a
float64 reference of work that is not recorded step by step: {"spread" (a file), "reduction",
"precision"}, see rounding.py.

NumPy has no bfloat16: such an array is stored as uint16, and `dtype` says what it is.
"""

import collections
import json
import os

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

MANIFEST = "manifest.json"

Tensor = collections.namedtuple("Tensor", "name kind dtype file rounding")
Step = collections.namedtuple("Step", "name kind outputs precision settings weights code_before")


def stored(array: "numpy.ndarray") -> "tuple[numpy.ndarray, str]":
    """The array in a type that NumPy can store, and the name of its own type."""
    array = numpy.asarray(array)
    name = array.dtype.name
    if name == "bfloat16":  # from ml_dtypes, which JAX and TensorFlow depend on
        return array.view(numpy.uint16), name
    if array.dtype.kind == "O":
        array = array.astype(str)
    if array.dtype.kind in "US":
        return array, "text"
    if array.dtype.kind not in "biufc":
        # Other types of ml_dtypes, such as float8: float32 represents them exactly.
        return array.astype(numpy.float32), name
    return numpy.ascontiguousarray(array).reshape(array.shape), name


class Writer(object):
    """Writes arrays as they come; close() writes the manifest, which makes them readable."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tensors: "list[dict[str, Any]]" = []
        self._steps: "list[dict[str, Any]]" = []
        self._names: "set[str]" = set()
        self._files = 0
        os.makedirs(folder, exist_ok=True)

    def tensor(
        self,
        name: str,
        kind: str,
        array: "numpy.ndarray",
        dtype: "str | None" = None,
        rounding: "Any" = None,
    ) -> None:
        """`dtype` only for a bfloat16 array that is given as uint16; `rounding` is a triple:
        (spread, reduction, precision)."""
        if name in self._names:
            raise ValueError("the name {!r} is recorded twice".format(name))
        self._names.add(name)
        kept, seen = stored(array)
        entry: "dict[str, Any]" = {"name": name, "kind": kind, "rounding": None}
        entry.update(dtype=dtype or seen, file=self._save(kept))
        if rounding is not None:
            spread, reduction, precision = rounding
            entry["rounding"] = {
                "spread": self._save(numpy.asarray(spread)),
                "reduction": reduction,
                "precision": precision,
            }
        self._tensors.append(entry)

    def step(
        self,
        name: str,
        kind: str,
        outputs: "Sequence[str]",
        precision: str,
        settings: "Any",
        weights: str,
        code_before: bool = False,
    ) -> None:
        """`settings` is the layer's configuration as JSON; `weights` a digest of its weights.

        `code_before`: the user's code made an input of it from the results of other steps."""
        self._steps.append(
            {
                "name": name,
                "kind": kind,
                "outputs": list(outputs),
                "precision": precision,
                "settings": settings,
                "weights": weights,
                "code_before": code_before,
            }
        )

    def close(self) -> None:
        with open(os.path.join(self._folder, MANIFEST), "w") as file:
            json.dump({"tensors": self._tensors, "steps": self._steps}, file)

    def _save(self, array: "numpy.ndarray") -> str:
        name = "{:05d}.npy".format(self._files)
        self._files += 1
        numpy.save(os.path.join(self._folder, name), array, allow_pickle=False)
        return name


class Recording(object):
    """Reads what a Writer wrote. An array is read when it is used."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        with open(os.path.join(folder, MANIFEST)) as file:
            manifest = json.load(file)
        self.tensors = collections.OrderedDict(
            (entry["name"], Tensor(**entry)) for entry in manifest["tensors"]
        )
        self.steps = [Step(**entry) for entry in manifest["steps"]]

    def array(self, name: str) -> "numpy.ndarray":
        return self._load(self.tensors[name].file)

    def shares(self, name: str, other: "Recording") -> bool:
        """Whether this array and that of another recording are the same file: that is so if two
        runs of a lane gave the same bytes."""
        if self.tensors[name].dtype != other.tensors[name].dtype:
            return False
        return os.path.samefile(self._path(name), other._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, self.tensors[name].file)

    def rounding(self, name: str) -> "tuple[numpy.ndarray, int, str] | None":
        """(spread, reduction, precision), or None."""
        known = self.tensors[name].rounding
        if known is None:
            return None
        return self._load(known["spread"]), known["reduction"], known["precision"]

    def _load(self, file: str) -> "numpy.ndarray":
        path = os.path.join(self._folder, file)
        try:
            return numpy.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:  # an array without elements cannot be mapped
            return numpy.load(path, allow_pickle=False)
