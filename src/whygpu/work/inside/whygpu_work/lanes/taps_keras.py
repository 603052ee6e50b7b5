"""Intercepts every step of a Keras model: functional, sequential or written as a class.

A step is one call of one layer, or of one operation of a functional model. Models are containers,
and so are a user's own layers that consist of layers: their inner layers are the steps. A layer of
Keras itself is one step. What a user's code computes after the last inner layer is a step too, with
the name of the model or layer whose code it is.
"""

import contextlib
import hashlib
import json

import numpy

from .. import trees
from . import passed_on, unused_tensorflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator


@contextlib.contextmanager
def tapped(keras: "Any", model: "Any", on_step: "Callable[..., Any]") -> "Iterator[_Taps]":
    """In this context, `on_step(name, layer, compute, args, kwargs)` runs the steps of `model`.

    `compute(args, kwargs)` computes the step; the result of `on_step` is passed to the next step.
    """
    taps = _Taps(keras, model, on_step)
    classes = [keras.layers.Layer]
    if hasattr(keras, "Operation"):  # Keras 3, where a layer is one kind of operation
        classes.append(keras.Operation)
    originals = [cls.__call__ for cls in classes]
    for cls, original in zip(classes, originals):
        cls.__call__ = taps.around(original)
    try:
        yield taps
    finally:
        for cls, original in zip(classes, originals):
            cls.__call__ = original


class _Taps(object):
    code_before = False
    """Whether the user's code computed an input of the step that is running."""

    def __init__(self, keras: "Any", model: "Any", on_step: "Callable[..., Any]") -> None:
        self._model = model
        self._on_step = on_step
        self._passed_on = passed_on.PassedOn(_tensors_by(keras))
        self._containers: "list[Any]" = []
        self._within_step = False
        self._calls: "dict[str, int]" = {}

    def around(self, original: "Callable[..., Any]") -> "Callable[..., Any]":
        def call(layer: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            # Keras 3 calls this twice for a layer: as a layer and as an operation.
            known = self._containers and self._containers[-1] is layer
            if self._within_step or known:
                return original(layer, *args, **kwargs)
            if is_container(layer):
                return self._look_into(original, layer, args, kwargs)
            return self._step(original, layer, args, kwargs)

        return call

    def _look_into(
        self, original: "Callable[..., Any]", layer: "Any", args: "Any", kwargs: "Any"
    ) -> "Any":
        if layer is self._model:
            self._calls.clear()
            self._passed_on.begin((args, kwargs))
        self._containers.append(layer)
        try:
            result = original(layer, *args, **kwargs)
        finally:
            self._containers.pop()
        if self._within_step or not has_code_of_its_own(layer):
            return result
        return self._noted(layer, _as_it_is, (result,), {})

    def _step(
        self, original: "Callable[..., Any]", layer: "Any", args: "Any", kwargs: "Any"
    ) -> "Any":
        def compute(args: "Any", kwargs: "Any") -> "Any":
            self._within_step = True
            try:
                return original(layer, *args, **kwargs)
            finally:
                self._within_step = False

        return self._noted(layer, compute, args, kwargs)

    def _noted(
        self, layer: "Any", compute: "Callable[[Any, Any], Any]", args: "Any", kwargs: "Any"
    ) -> "Any":
        by_user = is_container(layer) or any(map(has_code_of_its_own, self._containers))
        self.code_before = by_user and self._passed_on.is_computed((args, kwargs))
        result = self._on_step(self._name(layer), layer, compute, args, kwargs)
        self._passed_on.note(result)
        return result

    def _name(self, layer: "Any") -> str:
        """The names of the models that contain it, and its own; with a number from the second call
        on."""
        outer = [item.name for item in self._containers if item is not self._model]
        name = "/".join(outer + [layer.name])
        self._calls[name] = self._calls.get(name, 0) + 1
        count = self._calls[name]
        return name if count == 1 else "{}#{}".format(name, count)


def _tensors_by(keras: "Any") -> "Callable[[Any], list[Any]]":
    if hasattr(keras, "ops"):
        return lambda structure: trees.flat(structure, keras.ops.is_tensor)
    import tensorflow  # Keras 2

    return lambda structure: trees.flat(structure, tensorflow.is_tensor)


def is_container(layer: "Any") -> bool:
    """Whether a layer is a container and not a step."""
    inner = getattr(layer, "_layers", None)
    if not inner:
        return False
    names = {cls.__name__ for cls in type(layer).__mro__}
    return "Model" in names or not is_own(type(layer))


def has_code_of_its_own(container: "Any") -> bool:
    """Whether the user's code connects its layers, and not Keras."""
    for kind in type(container).__mro__:
        if "call" in vars(kind):
            return not is_own(kind)
    return False


def _as_it_is(args: "Any", kwargs: "Any") -> "Any":
    return args[0]


def is_own(kind: type) -> bool:
    """Whether a class belongs to Keras and not to the user."""
    return kind.__module__.split(".")[0] in ("keras", "tensorflow", "tf_keras")


def precision(layer: "Any") -> str:
    """The type that a layer computes in."""
    return str(getattr(layer, "compute_dtype", None) or getattr(layer, "dtype", None) or "float32")


def settings(layer: "Any") -> "Any":
    """A layer's configuration as plain JSON values; empty if it has none."""
    try:
        with unused_tensorflow.left_alone():
            config = layer.get_config()
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return {}
    return json.loads(json.dumps(config, default=str, sort_keys=True))


def digest(weights: "Iterable[Any]") -> str:
    """A digest of arrays: equal if and only if the arrays are."""
    result = hashlib.sha256()
    for array in weights:
        array = numpy.ascontiguousarray(array)
        result.update("{} {};".format(array.dtype.name, array.shape).encode())
        result.update(array.view(numpy.uint8).tobytes() if array.size else b"")
    return result.hexdigest()[:16]


def recorder(keras: "Any", model: "Any") -> "tuple[Any, list[tuple[str, Any, bool]]]":
    """A model that returns the result of every step of `model`, compiled like the model itself.

    Also a list that has, after a call, of each of its outputs the name, the layer, and whether
    the user's code computed its input.
    """
    steps: "list[tuple[str, Any, bool]]" = []

    class Recorder(keras.Model):
        def __init__(self) -> None:
            super(Recorder, self).__init__()
            self.recorded = model
            if hasattr(keras, "Operation"):
                # Keras 3 on JAX would otherwise run it once to build it, though it is built.
                self.built = True

        def call(self, inputs: "Any") -> "Any":
            # A model is traced several times; the last trace counts.
            del steps[:]
            results: "list[Any]" = []

            def on_step(
                name: str,
                layer: "Any",
                compute: "Callable[[Any, Any], Any]",
                args: "Any",
                kwargs: "Any",
            ) -> "Any":
                before = taps.code_before
                result = compute(args, kwargs)
                steps.append((name, layer, before))
                results.append(result)
                return result

            with tapped(keras, self.recorded, on_step) as taps:
                self.recorded(inputs, training=False)
            return results

    return Recorder(), steps
