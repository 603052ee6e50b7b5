"""Functions of tf.contrib.eager that have no other name in TensorFlow 2."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = ["Iterator", "Variable", "gradients_function", "implicit_gradients"]
__all__ += ["implicit_value_and_gradients", "num_gpus", "value_and_gradients_function"]


def Variable(*args: "Any", **kwargs: "Any") -> "Any":  # noqa: N802
    """A variable of eager execution is always a resource."""
    return tf.Variable(*args, **dict(kwargs, use_resource=True))


def Iterator(dataset: "Any") -> "Any":  # noqa: N802
    return iter(dataset)


def num_gpus() -> int:
    return len(tf.config.list_physical_devices("GPU"))


def implicit_value_and_gradients(f: "Any") -> "Any":
    """f's value, and its gradients for the variables that it uses."""

    def value_and_gradients(*args: "Any", **kwargs: "Any") -> "tuple[Any, list[Any]]":
        with tf.GradientTape() as tape:
            value = f(*args, **kwargs)
        variables = tape.watched_variables()
        return value, list(zip(tape.gradient(value, variables), variables))

    return value_and_gradients


def implicit_gradients(f: "Any") -> "Callable[..., Any]":
    both = implicit_value_and_gradients(f)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


def value_and_gradients_function(f: "Any", params: "Any" = None) -> "Any":
    """f's value, and its gradients for its arguments, or for those at the places `params`."""

    def value_and_gradients(*args: "Any") -> "tuple[Any, Any]":
        args = tuple(tf.convert_to_tensor(each) for each in args)
        chosen = [args[place] for place in (range(len(args)) if params is None else params)]
        with tf.GradientTape() as tape:
            for each in chosen:
                tape.watch(each)
            value = f(*args)
        return value, tape.gradient(value, chosen)

    return value_and_gradients


def gradients_function(f: "Any", params: "Any" = None) -> "Callable[..., Any]":
    both = value_and_gradients_function(f, params)
    return lambda *args: both(*args)[1]
