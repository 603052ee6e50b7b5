"""Runs a Keras model: inputs of a batch size, one training step, one inference."""

import numpy

from . import trees
from .inputs import parse_shapes, random_array
from .loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class KerasWork(object):
    framework = "keras"

    def __init__(
        self,
        model: "Any",
        optimizer: "str | None" = None,
        shapes: "str | None" = None,
        seed: int = 0,
        example: "Any" = None,
    ) -> None:
        """`example` has the structure of the inputs, for a model that does not declare it."""
        import keras

        self.model = model
        self._example = example if example is not None else _built_with(model)
        self.backend = keras.backend.backend()
        self.seed = seed
        self._specs = input_specs(model, shapes)
        self._optimizer = optimizer
        # build() of a subclass marks the model as built, but does not build its layers.
        if not all(each.built for each in [model] + all_layers(model)):
            model(self.arranged([random_array((2,) + s, d, seed) for s, d in self._specs]))

    def inputs(self, batch: int) -> "Any":
        """Arrays in the structure that the model takes."""
        below = smallest_vocabulary(self.model)
        arrays = [
            random_array((batch,) + shape, dtype, self.seed + i, below)
            for i, (shape, dtype) in enumerate(self._specs)
        ]
        return self.arranged(arrays)

    def arranged(self, arrays: "Sequence[Any]") -> "Any":
        """Arrays in the order of the model's inputs, in the structure that it takes."""
        structure = getattr(self.model, "_inputs_struct", None)
        if isinstance(structure, dict):
            # Keras orders them by key, not by the order of the dictionary.
            return dict(zip(sorted(structure), arrays))
        if structure is None and len(trees.flat(self._example, _has_shape)) == len(arrays):
            waiting = iter(arrays)
            return trees.replaced(self._example, _has_shape, lambda each: next(waiting))
        return arrays[0] if len(arrays) == 1 else arrays

    def prepare_training(self) -> None:
        """Compile the model if it is not compiled; with mean squared error if it has no loss."""
        compiled = getattr(self.model, "compiled", False) and self.model.optimizer is not None
        if compiled and self._optimizer is None:
            return
        loss = getattr(self.model, "loss", None) if compiled else None
        self.model.compile(optimizer=self._optimizer or "adam", loss=loss or "mse")

    def targets(self, inputs: "Any") -> "Any":
        """Targets for fit: of the outputs' shape, or class numbers if the loss takes those."""
        batch = len(first_leaf(inputs))
        names, outputs = _outputs(self.model, inputs)
        losses = losses_of(self.model, names, len(outputs))
        arrays = [
            _target(batch, tuple(getattr(each, "shape", each))[1:], loss, self.seed + i)
            for i, (each, loss) in enumerate(zip(outputs, losses))
        ]
        if names:
            return dict(zip(names, arrays))
        return arrays[0] if len(arrays) == 1 else arrays

    def train_step(self, inputs: "Any", targets: "Any") -> float:
        """One optimizer step as fit does it; returns the loss."""
        loss = self.model.train_on_batch(inputs, targets)
        return float(loss[0] if isinstance(loss, (list, tuple)) else loss)

    def infer(self, inputs: "Any") -> "Any":
        """The outputs as NumPy arrays, in the model's structure."""
        return self.model.predict_on_batch(inputs)


def _target(batch: int, shape: "Any", loss: str, seed: int) -> "numpy.ndarray":
    name = loss_name(loss)
    if any(size is None for size in shape):
        raise Unusable("the model's output has a size that depends on its input: %s" % (shape,))
    if "sparse" in name:
        return random_array((batch,) + shape[:-1], "int32", seed, shape[-1])
    if "categorical" in name:
        chosen = random_array((batch,) + shape[:-1], "int64", seed, shape[-1])
        return numpy.eye(shape[-1], dtype="float32")[chosen]
    if "binary" in name:
        return random_array((batch,) + shape, "int32", seed, 2).astype("float32")
    return random_array((batch,) + shape, "float32", seed)


def _outputs(model: "Any", inputs: "Any") -> "tuple[list[str], list[Any]]":
    """The names of the outputs, if the model returns a dictionary, and the outputs."""
    structure = getattr(model, "_outputs_struct", None)
    if not getattr(model, "outputs", None):
        import keras

        # For a subclass of Model, only `call` shows what it returns.
        given = keras.tree.map_structure(
            lambda each: keras.KerasTensor(each.shape, str(each.dtype)), inputs
        )
        structure = model.compute_output_spec(given)
    if isinstance(structure, dict) and all(hasattr(each, "shape") for each in structure.values()):
        names = sorted(structure)
        return names, [structure[name] for name in names]
    if getattr(model, "outputs", None):
        return [], model.outputs
    return [], trees.flat(structure, lambda each: hasattr(each, "shape"))


def losses_of(model: "Any", names: "Sequence[str]", count: int) -> "list[Any]":
    """The loss of each output, in their order."""
    loss = getattr(model, "loss", None)
    if isinstance(loss, dict):
        keys = names or list(getattr(model, "output_names", None) or ()) or list(loss)
        return [loss.get(key) for key in keys]
    if isinstance(loss, (list, tuple)):
        return list(loss)
    return [loss] * count


def _has_shape(thing: "Any") -> bool:
    """An array, or a shape alone."""
    if isinstance(thing, (tuple, list)):
        return bool(thing) and all(each is None or isinstance(each, int) for each in thing)
    return hasattr(thing, "shape")


def _built_with(model: "Any") -> "Any":
    """The shapes with which a subclass of Model was built, in the structure of its inputs.

    None if it does not say, or if it has embeddings: a shape does not tell that they need integers.
    """
    if getattr(model, "inputs", None) or not model.built or not hasattr(model, "get_build_config"):
        return None
    if any(hasattr(layer, "input_dim") for layer in all_layers(model)):
        return None
    return (model.get_build_config() or {}).get("input_shape")


def input_specs(model: "Any", shapes: "str | None") -> "list[tuple[tuple[int, ...], str]]":
    """(shape without the batch, dtype) of each input; what the user gave takes precedence."""
    if shapes:
        return parse_shapes(shapes)
    if getattr(model, "inputs", None):
        specs = [(tuple(each.shape[1:]), str(each.dtype)) for each in model.inputs]
    else:
        known = trees.flat(_built_with(model), _has_shape)
        if not known:
            raise Unusable("the model does not say what it takes: give --input, such as 224x224x3")
        specs = [(tuple(shape[1:]), "float32") for shape in known]
    if any(dtype == "string" for _, dtype in specs):
        raise Unusable(
            "the model takes text, which whygpu cannot generate; name a function that builds it "
            "without the layer that reads the text"
        )
    if any(size is None for shape, _ in specs for size in shape):
        words = ", ".join("x".join(str(size or "?") for size in shape) for shape, _ in specs)
        raise Unusable("the model leaves sizes of its input open (%s): give --input" % words)
    return specs


def smallest_vocabulary(model: "Any") -> int:
    """Integers below this are valid indices for every embedding of the model."""
    sizes = [layer.input_dim for layer in all_layers(model) if hasattr(layer, "input_dim")]
    return min([size for size in sizes if isinstance(size, int)] or [2])


def all_layers(model: "Any") -> "list[Any]":
    flatten = getattr(model, "_flatten_layers", None)
    return list(flatten(include_self=False)) if flatten else list(getattr(model, "layers", []))


def loss_name(loss: "Any") -> str:
    """The name of the loss in lower case; empty if it has none."""
    name = loss if isinstance(loss, str) else getattr(loss, "name", None)
    return str(name or getattr(loss, "__name__", "") or "").lower()


def first_leaf(tree: "Any") -> "Any":
    while isinstance(tree, (dict, list, tuple)):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return tree
