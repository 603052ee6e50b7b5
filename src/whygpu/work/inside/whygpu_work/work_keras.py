"""A Keras model at work: inputs of a batch size, one training step, one inference."""

import numpy

from . import trees
from .inputs import parse_shapes, random_array
from .loading import Unusable


class KerasWork(object):
    framework = "keras"

    def __init__(self, model, optimizer=None, shapes=None, seed=0, example=None):
        """`example` has the structure of what a model takes that does not say so itself."""
        import keras

        self.model = model
        self._example = example
        self.backend = keras.backend.backend()
        self.seed = seed
        self._specs = input_specs(model, shapes)
        self._optimizer = optimizer
        if not model.built:
            model(self.arranged([random_array((2,) + s, d, seed) for s, d in self._specs]))

    def inputs(self, batch, seed=None):
        """Arrays in the structure that the model takes."""
        seed = self.seed if seed is None else seed
        below = smallest_vocabulary(self.model)
        arrays = [
            random_array((batch,) + shape, dtype, seed + i, below)
            for i, (shape, dtype) in enumerate(self._specs)
        ]
        return self.arranged(arrays)

    def arranged(self, arrays):
        """Arrays in the order of the model's inputs, in the structure that it takes."""
        structure = getattr(self.model, "_inputs_struct", None)
        if isinstance(structure, dict):
            # Keras has them in the order of the keys, whatever the dictionary's own is.
            return dict(zip(sorted(structure), arrays))
        if structure is None and self._example is not None:
            waiting = iter(arrays)
            return trees.replaced(self._example, _is_array, lambda each: next(waiting))
        return arrays[0] if len(arrays) == 1 else arrays

    def prepare_training(self):
        """Compile the model where it is not; a loss of ours serves where it has none."""
        compiled = getattr(self.model, "compiled", False) and self.model.optimizer is not None
        if compiled and self._optimizer is None:
            return
        loss = getattr(self.model, "loss", None) if compiled else None
        self.model.compile(optimizer=self._optimizer or "adam", loss=loss or "mse")

    def targets(self, inputs, seed=None):
        """What fit would be given as y: of the outputs' shape, or class numbers, as the loss is."""
        import keras

        seed = self.seed if seed is None else seed
        batch = len(first_leaf(inputs))
        outputs = self.model.outputs if getattr(self.model, "outputs", None) else None
        if outputs is None:
            # A subclass of Model says by its `call` alone what it returns.
            given = keras.tree.map_structure(
                lambda each: keras.KerasTensor(each.shape, str(each.dtype)), inputs
            )
            outputs = keras.tree.flatten(self.model.compute_output_spec(given))
        shapes = [tuple(getattr(each, "shape", each))[1:] for each in outputs]
        arrays = [self._target(batch, shape, seed + i) for i, shape in enumerate(shapes)]
        return arrays[0] if len(arrays) == 1 else arrays

    def _target(self, batch, shape, seed):
        loss = loss_name(self.model)
        if any(size is None for size in shape):
            raise Unusable("the model's output has a size that depends on its input: %s" % (shape,))
        if "sparse" in loss:
            return random_array((batch,) + shape[:-1], "int32", seed, shape[-1])
        if "categorical" in loss:
            chosen = random_array((batch,) + shape[:-1], "int64", seed, shape[-1])
            return numpy.eye(shape[-1], dtype="float32")[chosen]
        if "binary" in loss:
            return random_array((batch,) + shape, "int32", seed, 2).astype("float32")
        return random_array((batch,) + shape, "float32", seed)

    def train_step(self, inputs, targets):
        """One optimiser step as fit does it; the loss."""
        loss = self.model.train_on_batch(inputs, targets)
        return float(loss[0] if isinstance(loss, (list, tuple)) else loss)

    def infer(self, inputs):
        """The outputs as NumPy arrays, in the model's structure."""
        return self.model.predict_on_batch(inputs)


def _is_array(thing):
    return hasattr(thing, "shape")


def input_specs(model, shapes):
    """(shape without the batch, dtype) of each input, the user's word before the model's own."""
    if shapes:
        return parse_shapes(shapes)
    if getattr(model, "inputs", None):
        specs = [(tuple(each.shape[1:]), str(each.dtype)) for each in model.inputs]
    else:
        shape = getattr(model, "input_shape", None) if model.built else None
        if not isinstance(shape, tuple):
            raise Unusable("the model does not say what it takes: give --input, such as 224x224x3")
        specs = [(tuple(shape[1:]), "float32")]
    if any(size is None for shape, _ in specs for size in shape):
        words = ", ".join("x".join(str(size or "?") for size in shape) for shape, _ in specs)
        raise Unusable("the model leaves sizes of its input open (%s): give --input" % words)
    return specs


def smallest_vocabulary(model):
    """Whole numbers below this are valid indices for every embedding of the model."""
    sizes = [layer.input_dim for layer in all_layers(model) if hasattr(layer, "input_dim")]
    return min([size for size in sizes if isinstance(size, int)] or [2])


def all_layers(model):
    flatten = getattr(model, "_flatten_layers", None)
    return list(flatten(include_self=False)) if flatten else list(getattr(model, "layers", []))


def loss_name(model):
    """The loss's own name in lower case; empty where it has none we could read."""
    loss = getattr(model, "loss", None)
    if isinstance(loss, (list, tuple)) and loss:
        loss = loss[0]
    if isinstance(loss, dict) and loss:
        loss = next(iter(loss.values()))
    name = loss if isinstance(loss, str) else getattr(loss, "name", None)
    return str(name or getattr(loss, "__name__", "") or "").lower()


def first_leaf(tree):
    while isinstance(tree, (dict, list, tuple)):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return tree
