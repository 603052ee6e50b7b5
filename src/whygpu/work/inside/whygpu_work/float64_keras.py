"""A Keras model once more in float64, with the same weights: the reference for all lanes."""

import numpy

_PRECISIONS = ("float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16")


class CannotLift(Exception):
    """Why there is no such model."""


def lifted(keras, model):
    """The model in float64. Its weights are the given one's, which float64 holds exactly."""
    try:
        config = in_float64(model.get_config())
        result = type(model).from_config(config, custom_objects=_classes(model))
    except Exception as error:  # whatever a user's layers may raise
        raise CannotLift(
            "the model cannot be made again from its configuration ({}: {})".format(
                type(error).__name__, str(error).strip().split("\n")[0][:300]
            )
        )
    give_weights(result, model.get_weights())
    return result


def give_weights(model, weights):
    if len(model.get_weights()) != len(weights):
        raise CannotLift("made again in float64, the model has other weights than before")
    model.set_weights([_wide(array) for array in weights])


def _wide(array):
    array = numpy.asarray(array)
    return array if array.dtype.kind in "biu" else array.astype(numpy.float64)


def in_float64(config):
    """A configuration with float64 wherever it names a floating-point type."""
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


def _is_precision(value):
    return isinstance(value, str) and value in _PRECISIONS


def _classes(model):
    """The user's own classes, which Keras could not find by name."""
    inner = model._flatten_layers() if hasattr(model, "_flatten_layers") else model.layers
    return {type(layer).__name__: type(layer) for layer in inner}
