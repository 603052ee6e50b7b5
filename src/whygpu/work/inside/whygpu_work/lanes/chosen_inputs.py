"""The arrays of the user's --inputs file, matched to what a model takes."""

import inspect

import numpy

from .. import archives
from ..inputs import rows_of
from ..loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Sequence


def read(path: str, batch: "int | None") -> "list[tuple[str, numpy.ndarray]]":
    """[(name, array)] in the order of the file, with `batch` rows."""
    try:
        archives.check(path)
        with numpy.load(path, allow_pickle=False) as file:
            if not hasattr(file, "files"):
                raise Unusable("--inputs %s: expected a file of numpy.savez, with names" % path)
            arrays = [(name, file[name]) for name in file.files]
    except (OSError, ValueError, archives.Bomb) as error:
        raise Unusable("--inputs %s cannot be read: %s" % (path, error))
    if not arrays:
        raise Unusable("--inputs %s: there is no array in it" % path)
    return [(name, _rows(name, array, batch)) for name, array in arrays]


def _rows(name: str, array: "numpy.ndarray", batch: "int | None") -> "numpy.ndarray":
    if batch is None or not array.ndim:
        return array
    if array.shape[0] == 0:
        raise Unusable("--inputs: %s has no rows" % name)
    return rows_of(array, batch)


def matched(
    arrays: "Sequence[tuple[str, numpy.ndarray]]", names: "Sequence[str]"
) -> "list[numpy.ndarray]":
    """The arrays in the order of the inputs' names.

    They are matched by name, else by their order in the file if the number is the same.
    """
    given = dict(arrays)
    if all(name in given for name in names):
        return [given[name] for name in names]
    if len(arrays) == len(names) and not any(name in given for name in names):
        return [array for _, array in arrays]
    raise Unusable(
        "--inputs has %s; the model takes %s" % (", ".join(given), ", ".join(names) or "nothing")
    )


def check(
    array: "numpy.ndarray", name: str, shape: "tuple[int | None, ...]", dtype: str
) -> "numpy.ndarray":
    """The array as the input needs it; `shape` is without the batch, with None for any size."""
    fits = array.ndim == len(shape) + 1 and all(
        size is None or size == given for size, given in zip(shape, array.shape[1:])
    )
    if not fits:
        raise Unusable(
            "--inputs: %s is of shape %s; expected (rows, %s)"
            % (name, array.shape, ", ".join(str(size or "any") for size in shape))
        )
    if array.dtype.kind == "f" and "float" in dtype and dtype != "bfloat16":
        return array.astype(dtype)
    return array


def wanted_by(function: "Callable[..., Any]", names: "Iterable[str]") -> bool:
    """Whether a function takes arrays of these names."""
    parameters = _parameters(function)
    needed = {each.name for each in parameters if each.default is each.empty}
    return bool({each.name for each in parameters} & set(names)) and needed <= set(names)


def chosen(
    function: "Callable[..., Any]", arrays: "dict[str, numpy.ndarray]"
) -> "dict[str, numpy.ndarray]":
    """The arrays that the function takes, by name."""
    taken = {each.name for each in _parameters(function)}
    return {name: array for name, array in arrays.items() if name in taken}


def _parameters(function: "Callable[..., Any]") -> "list[inspect.Parameter]":
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
