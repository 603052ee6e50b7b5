"""The Keras model that a program was training or using: its configuration, without weights."""

import sys

from whygpu_bootstrap import frameworks
from whygpu_bootstrap.memory.frames import UNKNOWN, calls_at, package, value_of
from whygpu_bootstrap.memory.work import LARGEST, CannotNote, plain_names, surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    import types
    from typing import Any, Callable

    from whygpu_bootstrap.memory.frames import Frames

TRAINING = ("fit", "train_on_batch")
USING = ("evaluate", "test_on_batch", "predict", "predict_on_batch")
BATCH_AT = {"fit": 2, "evaluate": 2, "predict": 1}
"""The place of batch_size among the arguments; the other methods take one batch."""
DEFAULT_BATCH = 32


def noted(frames: "Frames", batch: "Any") -> "dict[str, Any] | None":
    """None if no method of a Keras model was running."""
    keras = sys.modules["keras"]
    if not hasattr(keras, "Model"):
        return None
    calls = _calls(frames)
    if calls and int(keras.__version__.split(".")[0]) < 3:
        raise CannotNote("estimates need Keras 3, and this is Keras " + keras.__version__)
    for call, frame in calls:
        model = value_of(call.func.value, frame)
        if isinstance(model, keras.Model):
            given = _argument(call, frame, "x", 0)
            size = _batch(call, frame, given, batch)
            if size is not None:
                return _described(keras, model, call.func.attr, size, given)
    # The source does not show everything; what was noted at the start of the call does.
    left = frameworks.part("memory.keras").left() if calls else None
    if left is not None:
        return dict(left, begun=False)
    if any(isinstance(value_of(call.func.value, frame), keras.Model) for call, frame in calls):
        raise CannotNote("nothing shows which batch size %s() used" % calls[0][0].func.attr)
    return None


def begun(model: "Any", method: str, batch: "Any", given: "Any") -> "dict[str, Any]":
    """The same for a call that has just begun."""
    found = _described(sys.modules["keras"], model, method, batch, given)
    return dict(surroundings([]), why="", begun=True, **found)


def _described(
    keras: "Any", model: "Any", method: str, batch: "Any", given: "Any"
) -> "dict[str, Any]":
    return {
        "of": "keras",
        "name": type(model).__name__,
        "mode": "train" if method in TRAINING else "infer",
        "batch": batch,
        "backend": keras.backend.backend(),
        "input": None if _says_what_it_takes(model) else _shapes(given),
        "data": _without_tensorflow(_saved, keras, model),
    }


def _calls(frames: "Frames") -> "list[tuple[Any, types.FrameType]]":
    """Calls in the program's own code that may be to methods of a model, innermost first."""
    return [
        (call, frame)
        for frame, line in reversed(frames)
        if not package(frame)
        for call in calls_at(frame, line)
        if getattr(call.func, "attr", "") in TRAINING + USING
    ]


def _argument(call: "ast.Call", frame: "types.FrameType", name: str, place: int) -> "Any":
    """The value of an argument; UNKNOWN if the source does not show it, None if there is none."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return value_of(keyword.value, frame)
        if keyword.arg is None:
            options = value_of(keyword.value, frame)
            if type(options) is not dict:
                return UNKNOWN
            if name in options:
                return options[name]
    if any(type(each).__name__ == "Starred" for each in call.args):
        return UNKNOWN
    return value_of(call.args[place], frame) if place < len(call.args) else None


def _batch(call: "Any", frame: "types.FrameType", given: "Any", by_name: "Any") -> "Any":
    place = BATCH_AT.get(call.func.attr)
    size = _argument(call, frame, "batch_size", place) if place is not None else None
    rows = _rows(given)
    if place is None:
        found = rows
    elif type(size) is int:
        found = size if rows is None else min(size, rows)
    elif size is None and rows is not None:
        found = min(DEFAULT_BATCH, rows)
    else:
        found = _batch_of_data(given)
    return by_name if found is None else found


def _arrays(given: "Any") -> "list[Any]":
    """Arrays of nested lists and dicts, in the order in which Keras has them."""
    if isinstance(given, dict):
        return [each for key in sorted(given) for each in _arrays(given[key])]
    if isinstance(given, (list, tuple)):
        return [found for each in given for found in _arrays(each)]
    return [given] if isinstance(getattr(given, "shape", None), tuple) else []


def _rows(given: "Any") -> "int | None":
    """Of arrays. For other things, the length is a number of batches."""
    arrays = _arrays(given)
    return int(arrays[0].shape[0]) if arrays and len(arrays[0].shape) else None


def _batch_of_data(data: "Any") -> "int | None":
    """The batch size that a data set or loader reports."""
    spec = _first_spec(data)
    size = spec.shape[0] if spec is not None and spec.shape.rank else None
    if size is None:
        size = getattr(data, "batch_size", None)
    return size if type(size) is int else None


def _first_spec(data: "Any") -> "Any":
    found = getattr(data, "element_spec", None)
    while isinstance(found, (tuple, list, dict)) and found:
        found = found[sorted(found)[0]] if isinstance(found, dict) else found[0]
    return found if hasattr(found, "shape") else None


def _says_what_it_takes(model: "Any") -> bool:
    inputs: "Any" = getattr(model, "inputs", None)
    return bool(inputs) and all(size for each in inputs for size in each.shape[1:])


def _shapes(given: "Any") -> "str | None":
    """The inputs as `--input` writes them; None if nothing shows them."""
    spec = _first_spec(given)
    arrays = [spec] if spec is not None and spec.shape.rank else _arrays(given)
    words = []
    for array in arrays:
        sizes = tuple(array.shape)[1:]
        if not all(sizes):
            return None
        words.append("%s:%s" % ("x".join(str(size) for size in sizes), _dtype(array)))
    return ",".join(words) or None


def _dtype(array: "Any") -> str:
    name = getattr(array.dtype, "name", str(array.dtype).rpartition(".")[2])
    return "float32" if name == "float64" else name


def _without_tensorflow(function: "Callable[..., Any]", *arguments: "Any") -> "Any":
    """Keras imports TensorFlow to tell its shapes from others, also where another backend works
    and memory has just run out. A program that has not imported it has none of them."""
    lazy: "Any" = getattr(sys.modules.get("keras.src.utils.module_utils"), "tensorflow", None)
    if "tensorflow" in sys.modules or getattr(lazy, "_available", "") is not None:
        return function(*arguments)
    lazy._available = False
    try:
        return function(*arguments)
    finally:
        lazy._available = None


def _saved(keras: "Any", model: "Any") -> str:
    import json

    serialize = keras.saving.serialize_keras_object
    saved = {
        "module": type(model).__module__,
        "class_name": type(model).__name__,
        "registered_name": keras.saving.get_registered_name(type(model)),
        "config": serialize(_config(model)),
    }
    build = model.get_build_config()
    if build is not None:
        saved["build_config"] = serialize(build)
    # What Keras takes the model to be made with: for a subclass of Model, the defaults.
    made_with = getattr(getattr(model, "_auto_config", None), "config", None)
    whole = {
        "model": saved,
        "made_with": serialize(made_with) if made_with is not None else None,
        "shapes": [list(each.shape) for each in model.variables] if model.built else None,
        "compile": _compiled(serialize, model),
        "names": plain_names(),
    }
    text = json.dumps(whole)
    if len(text) > LARGEST:
        raise CannotNote("the model's configuration holds %d MiB of data" % (len(text) >> 20))
    return text


def _config(model: "Any") -> "Any":
    try:
        return model.get_config()
    except NotImplementedError:
        raise CannotNote(
            "Keras cannot recreate a %s, because it has no get_config()" % type(model).__name__
        )


def _compiled(serialize: "Any", model: "Any") -> "Any":
    """The arguments of compile(). Metrics take hardly any memory and are left out."""
    given = getattr(getattr(model, "_compile_config", None), "config", None)
    if not given:
        return None
    found = {}
    for name, value in given.items():
        if "metrics" in name:
            continue
        try:
            found[name] = serialize(value)
        except Exception:
            # With the JAX backend, the values of the optimizer were donated to the failed step.
            if name != "optimizer":
                raise
            found[name] = type(value).__name__.lower()
    return found
