"""A copy of a Keras model in float64, with the same weights: the reference for all lanes."""

import contextlib

import numpy

from ..lanes import taps_keras, unused_tensorflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

_PRECISIONS = ("float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16")


class CannotLift(Exception):
    """There is no such model; the message says why."""


def lifted(
    keras: "Any", model: "Any", inputs: "Any" = None, build_again: "Callable[[], Any] | None" = None
) -> "Any":
    """The model in float64, with the same weights, which float64 represents exactly.

    A model that was written as a class creates its layers itself, and its weights at its first
    call, which needs `inputs`. `build_again` is the program's function that makes the model, for
    layers without a configuration; None if there is no such function.
    """
    try:
        result = _made(keras, model, inputs, lambda: _from_configuration(model))
    except Exception as error:  # a user's layers may raise anything
        if build_again is None:
            raise CannotLift(_WORDS.format("from its configuration", _first_line(error)))
        try:
            with _whatever_is_asked(keras):
                result = _made(keras, model, inputs, build_again)
        except Exception as other:
            words = _first_line(error) + "; " + _first_line(other)
            raise CannotLift(_WORDS.format("from its configuration or by its function", words))
    give_weights(result, model.get_weights())
    _check(result)
    return result


_WORDS = "the model cannot be built again {} ({})"


def _first_line(error: "BaseException") -> str:
    return "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0][:300])


def _from_configuration(model: "Any") -> "Any":
    with unused_tensorflow.left_alone():
        config = in_float64(model.get_config())
        return type(model).from_config(config, custom_objects=_classes(model))


def _made(keras: "Any", model: "Any", inputs: "Any", make: "Callable[[], Any]") -> "Any":
    with _by_default(keras):
        result = make()
        if inputs is not None and len(result.weights) < len(model.weights):
            result(inputs, training=False)
    _take_names(result, model)
    return result


@contextlib.contextmanager
def _by_default(keras: "Any") -> "Iterator[None]":
    """In this context, layers that are created without a dtype compute in float64."""
    if hasattr(keras, "config") and hasattr(keras.config, "set_dtype_policy"):
        get, put = keras.config.dtype_policy, keras.config.set_dtype_policy
    else:
        get, put = keras.mixed_precision.global_policy, keras.mixed_precision.set_global_policy
    before = get()
    put("float64")
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def _whatever_is_asked(keras: "Any") -> "Iterator[None]":
    """In this context, layers that are created with another dtype compute in float64, too."""
    original = keras.layers.Layer.__init__

    def init(layer: "Any", *args: "Any", **kwargs: "Any") -> None:
        asked = kwargs.get("dtype")
        if _is_precision(getattr(asked, "name", asked)):
            kwargs["dtype"] = "float64"
        original(layer, *args, **kwargs)

    keras.layers.Layer.__init__ = init
    try:
        yield
    finally:
        keras.layers.Layer.__init__ = original


def _take_names(made: "Any", model: "Any") -> None:
    """Copy the names of layers: user code gives them new names, and steps are found by name."""
    pairs = list(zip(_named_parts(made), _named_parts(model)))
    if [type(new).__name__ for new, _ in pairs] != [type(old).__name__ for _, old in pairs]:
        raise ValueError("it then has other layers")
    for new, old in pairs:
        if new.name == old.name:
            continue
        if hasattr(new, "_name"):  # Keras 2, where `name` cannot be set
            new._name = old.name
        else:
            new.name = old.name


def _named_parts(model: "Any") -> "list[Any]":
    """Its layers, and the operations of functional models among them."""
    layers = _inner(model)
    operations = [each for layer in layers for each in getattr(layer, "operations", ())]
    return layers + [each for each in operations if not hasattr(each, "weights")]


def _check(model: "Any") -> None:
    for layer in _inner(model):
        precision = taps_keras.precision(layer)
        if precision in _PRECISIONS and precision != "float64":
            raise CannotLift(
                "its layer {} computes in {} whatever its configuration says".format(
                    layer.name, precision
                )
            )


def give_weights(model: "Any", weights: "Any") -> None:
    if len(model.get_weights()) != len(weights):
        raise CannotLift("built again in float64, the model has other weights than before")
    model.set_weights([_wide(array) for array in weights])
    for layer in _inner(model):
        if hasattr(layer, "finalize_state"):
            # Normalization computes with values derived from its weights.
            layer.finalize_state()


def _wide(array: "numpy.ndarray") -> "numpy.ndarray":
    array = numpy.asarray(array)
    return array if array.dtype.kind in "biu" else array.astype(numpy.float64)


def in_float64(config: "Any") -> "Any":
    """A configuration with float64 in place of each floating-point type."""
    if isinstance(config, dict):
        if config.get("class_name") == "DTypePolicy":
            return "float64" if _is_precision(config.get("config", {}).get("name")) else config
        return {
            key: "float64" if key == "dtype" and _is_precision(value) else in_float64(value)
            for key, value in config.items()
        }
    if isinstance(config, (list, tuple)):
        return type(config)(in_float64(item) for item in config)
    return config


def _is_precision(value: object) -> bool:
    return isinstance(value, str) and value in _PRECISIONS


def _classes(model: "Any") -> "dict[str, type]":
    """The user's own classes, which Keras could not find by name.

    Keras's own classes are left out: some layers and operations share a name.
    """
    kinds = [type(layer) for layer in _inner(model)]
    return {kind.__name__: kind for kind in kinds if not taps_keras.is_own(kind)}


def _inner(model: "Any") -> "list[Any]":
    flatten = getattr(model, "_flatten_layers", None)
    return list(flatten()) if flatten is not None else list(model.layers)
