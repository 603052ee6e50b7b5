"""Records every step of a Keras model: the result of each layer, for as many rows as fit."""

import sys

from .. import trees
from ..work_keras import all_layers
from . import host_arrays, taps_keras

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .recording import Writer

ROOM = 64 << 20
"""Bytes for the steps of one run. The float64 reference repeats them several times for every lane:
more rows would take longer and show no more."""
ROWS_WHERE_UNKNOWN = 4


def rows_that_fit(model: "Any", batch: int) -> int:
    size = bytes_per_row(model)
    fit = ROOM // size if size else ROWS_WHERE_UNKNOWN
    return int(max(1, min(batch, fit)))


def bytes_per_row(model: "Any") -> int:
    """Bytes of the results of all steps for one row, if known in advance; else 0."""
    total = 0
    for layer in getattr(model, "operations", None) or all_layers(model):
        try:
            outputs = layer.output
        except (AttributeError, ValueError, RuntimeError):
            # Called more than once, or never yet.
            continue
        for each in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            sizes = [size for size in tuple(getattr(each, "shape", ()))[1:] if size]
            count = 1
            for size in sizes:
                count *= size
            total += 4 * count
    return total


def record(keras: "Any", model: "Any", inputs: "Any", writer: "Writer") -> str:
    """Write every step of one inference; returns a note for the report, or an empty string."""
    try:
        steps = _compiled(keras, model, inputs)
        note = ""
    except Exception as error:  # whatever compiling a user's model with more outputs may raise
        note = "layers were computed one by one, because compiling them together failed: %s" % (
            _first_line(error)
        )
        steps = _one_by_one(keras, model, inputs)
    for name, layer, code_before, result in steps:
        _write(writer, name, layer, code_before, result)
    return note


def _first_line(error: "BaseException") -> str:
    return ("%s: %s" % (type(error).__name__, error)).split("\n")[0][:200]


def _compiled(keras: "Any", model: "Any", inputs: "Any") -> "list[tuple[str, Any, bool, Any]]":
    recorder, steps = taps_keras.recorder(keras, model)
    if getattr(model, "jit_compile", None) is not None:
        recorder.jit_compile = model.jit_compile
    results = recorder.predict_on_batch(inputs)
    if len(results) != len(steps):
        raise ValueError("%d steps gave %d results" % (len(steps), len(results)))
    return [step + (result,) for step, result in zip(steps, results)]


def _one_by_one(keras: "Any", model: "Any", inputs: "Any") -> "list[tuple[str, Any, bool, Any]]":
    steps: "list[tuple[str, Any, bool, Any]]" = []

    def on_step(
        name: str, layer: "Any", compute: "Callable[[Any, Any], Any]", args: "Any", kwargs: "Any"
    ) -> "Any":
        before = taps.code_before
        result = compute(args, kwargs)
        steps.append((name, layer, before, result))
        return result

    with taps_keras.tapped(keras, model, on_step) as taps, without_gradients(keras):
        model(inputs, training=False)
    return steps


def without_gradients(keras: "Any") -> "Any":
    if keras.backend.backend() == "torch":
        return sys.modules["torch"].no_grad()
    return _Nothing()


class _Nothing(object):
    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *error: object) -> None:
        pass


def _write(writer: "Writer", name: str, layer: "Any", code_before: bool, result: "Any") -> None:
    names = []
    for inner, leaf in host_arrays.named(trees.without_fields(trees.in_key_order(result)), name):
        array, dtype = host_arrays.on_host(leaf)
        inner = layer_tensor(inner)
        writer.tensor(inner, "layer", array, dtype)
        names.append(inner)
    settings = taps_keras.settings(layer)
    if _draws(layer):
        settings["draws_random_numbers"] = True
    # The weights of a container belong to the steps inside.
    has_weights = hasattr(layer, "get_weights") and not taps_keras.is_container(layer)
    weights = layer.get_weights() if has_weights else []
    writer.step(
        name,
        type(layer).__name__,
        names,
        taps_keras.precision(layer),
        settings,
        taps_keras.digest(weights),
        code_before,
    )


def layer_tensor(name: str) -> str:
    """The name of a layer's result, distinct from the names of the outputs."""
    return "layer " + name if name.replace("[", ".").split(".")[0] == "output" else name


def _draws(layer: "Any") -> bool:
    """Whether it has a generator of random numbers; most use it in training only."""
    return bool(getattr(layer, "_seed_generators", None)) or hasattr(layer, "seed_generator")
