"""A hand on every step of a Keras model: functional, sequential or written as a class.

A step is one call of one layer, or of one operation of a functional model. Models are looked into,
and so are a user's own layers that consist of layers; Keras' own layers are steps as they are, with
all that they hold inside. What a user's code makes of the layers inside, after the last of them, is
a step of its own, by the name of the model or layer whose code it is.
"""

import contextlib
import hashlib
import json

import numpy

from . import unused_tensorflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator


@contextlib.contextmanager
def tapped(keras: "Any", model: "Any", on_step: "Callable[..., Any]") -> "Iterator[None]":
    """While this holds, steps of `model` are done by `on_step(name, layer, compute, args, kwargs)`.

    `compute(args, kwargs)` does the step; what `on_step` returns goes on to the next.
    """
    taps = _Taps(model, on_step)
    classes = [keras.layers.Layer]
    if hasattr(keras, "Operation"):  # Keras 3, of which layers are one kind
        classes.append(keras.Operation)
    originals = [cls.__call__ for cls in classes]
    for cls, original in zip(classes, originals):
        cls.__call__ = taps.around(original)
    try:
        yield
    finally:
        for cls, original in zip(classes, originals):
            cls.__call__ = original


class _Taps(object):
    def __init__(self, model: "Any", on_step: "Callable[..., Any]") -> None:
        self._model = model
        self._on_step = on_step
        self._containers: "list[Any]" = []
        self._within_step = False
        self._calls: "dict[str, int]" = {}

    def around(self, original: "Callable[..., Any]") -> "Callable[..., Any]":
        def call(layer: "Any", *args: "Any", **kwargs: "Any") -> "Any":
            # Keras 3 comes here twice for a layer: as such, and as the operation that it is.
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
        self._containers.append(layer)
        try:
            result = original(layer, *args, **kwargs)
        finally:
            self._containers.pop()
        if self._within_step or not has_code_of_its_own(layer):
            return result
        return self._on_step(self._name(layer), layer, _as_it_is, (result,), {})

    def _step(
        self, original: "Callable[..., Any]", layer: "Any", args: "Any", kwargs: "Any"
    ) -> "Any":
        def compute(args: "Any", kwargs: "Any") -> "Any":
            self._within_step = True
            try:
                return original(layer, *args, **kwargs)
            finally:
                self._within_step = False

        return self._on_step(self._name(layer), layer, compute, args, kwargs)

    def _name(self, layer: "Any") -> str:
        """The names of the models that it lies in, and its own; with a number from the second call
        on."""
        outer = [item.name for item in self._containers if item is not self._model]
        name = "/".join(outer + [layer.name])
        self._calls[name] = self._calls.get(name, 0) + 1
        count = self._calls[name]
        return name if count == 1 else "{}#{}".format(name, count)


def is_container(layer: "Any") -> bool:
    """Whether a layer is looked into, rather than a step."""
    inner = getattr(layer, "_layers", None)
    if not inner:
        return False
    names = {cls.__name__ for cls in type(layer).__mro__}
    return "Model" in names or not is_own(type(layer))


def has_code_of_its_own(container: "Any") -> bool:
    """Whether a user's code puts its layers together, rather than Keras."""
    for kind in type(container).__mro__:
        if "call" in vars(kind):
            return not is_own(kind)
    return False


def _as_it_is(args: "Any", kwargs: "Any") -> "Any":
    return args[0]


def is_own(kind: type) -> bool:
    """Whether a class is Keras' own, rather than the user's."""
    return kind.__module__.split(".")[0] in ("keras", "tensorflow", "tf_keras")


def precision(layer: "Any") -> str:
    """The type that a layer computes in."""
    return str(getattr(layer, "compute_dtype", None) or getattr(layer, "dtype", None) or "float32")


def settings(layer: "Any") -> "Any":
    """A layer's configuration as plain JSON values; empty where it has none to tell."""
    try:
        with unused_tensorflow.left_alone():
            config = layer.get_config()
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return {}
    return json.loads(json.dumps(config, default=str, sort_keys=True))


def digest(weights: "Iterable[Any]") -> str:
    """Of arrays: equal if and only if they are."""
    result = hashlib.sha256()
    for array in weights:
        array = numpy.ascontiguousarray(array)
        result.update("{} {};".format(array.dtype.name, array.shape).encode())
        result.update(array.view(numpy.uint8).tobytes() if array.size else b"")
    return result.hexdigest()[:16]


def recorder(keras: "Any", model: "Any") -> "tuple[Any, list[tuple[str, Any]]]":
    """A model that gives what every step of `model` gives, compiled as the model itself would be.

    With it comes a list that holds, after a call, the name and the layer of each of its outputs.
    """
    steps: "list[tuple[str, Any]]" = []

    class Recorder(keras.Model):
        def __init__(self) -> None:
            super(Recorder, self).__init__()
            self.recorded = model
            if hasattr(keras, "Operation"):
                # Keras 3 on JAX would run it once operation by operation, to build what is built.
                self.built = True

        def call(self, inputs: "Any") -> "Any":
            # A model is traced more than once; the last time counts.
            del steps[:]
            results = []

            def on_step(
                name: str,
                layer: "Any",
                compute: "Callable[[Any, Any], Any]",
                args: "Any",
                kwargs: "Any",
            ) -> "Any":
                result = compute(args, kwargs)
                steps.append((name, layer))
                results.append(result)
                return result

            with tapped(keras, self.recorded, on_step):
                self.recorded(inputs, training=False)
            return results

    return Recorder(), steps
