"""The memory that a Keras model on TensorFlow takes on a GPU, modelled: no GPU is needed.

On a GPU, Keras has TensorFlow hand the step of `fit` or `predict` to XLA where XLA can take it; the
program that XLA would be given is what is looked at.
"""

from ..loading import Unusable
from ..work_keras import KerasWork, all_layers
from .half_precision import in_half_precision
from .xla import program_memory

FEW = 2
"""Rows of the arrays from which shapes and types are read."""
CAPABILITY = (9, 0)
"""Of the GPU that is meant where nobody said."""
NOT_MEASURED = (
    "The figures for TensorFlow are a model's, of the program that it would give XLA; they are not "
    "held against a GPU."
)


class KerasEstimator(object):
    """`optimizer` is a name that Keras knows, or None for the model's own."""

    def __init__(
        self, model, train=True, optimizer=None, mixed=False, shapes=None, gpu=None, tell=None
    ):
        import keras

        if int(keras.__version__.split(".")[0]) < 3:
            raise Unusable(
                "Keras %s: estimates are made for Keras 3, which TensorFlow has since 2.16"
                % keras.__version__
            )
        obstacle = _obstacle(model)
        if obstacle:
            raise Unusable(
                "cannot tell: on a GPU, TensorFlow would run this model operation by operation "
                "(%s), which cannot be followed without one; on JAX or PyTorch it can" % obstacle
            )
        if mixed:
            in_half_precision(model)
        work = KerasWork(model, optimizer, shapes)
        self.model, self.train = model, train
        self._capability = gpu or CAPABILITY
        self._tell = tell or (lambda text: None)
        self._inputs = work.inputs(FEW)
        self._targets = None
        if train:
            if not model.trainable_variables:
                raise Unusable("the model has no weights to train: give --infer")
            work.prepare_training()
            self._targets = work.targets(self._inputs)
            model.optimizer.build(model.trainable_variables)

    def at(self, batch):
        import tensorflow

        self._tell("tracing a batch of %d: a minute for a large model" % batch)
        data = (self._inputs, self._targets) if self.train else (self._inputs,)
        specs = [
            tensorflow.TensorSpec((batch,) + leaf.shape[1:], leaf.dtype) for leaf in _leaves(data)
        ]
        modelled = program_memory.model(self._text(data, specs), self._capability)
        shapes = [each.shape for each in self.model.trainable_variables]
        gradients = min(modelled.size, modelled.gradients(shapes)) if self.train else 0
        optimizer = self.model.optimizer.variables if self.train else []
        sizes = [
            ("weights", _bytes(self.model.variables), "measured"),
            ("gradients", gradients, "modelled"),
            ("optimizer", _bytes(optimizer), "measured"),
            ("activations", modelled.size - gradients, "modelled"),
            ("inputs", sum(_size(each.shape, each.dtype) for each in specs), "measured"),
            ("results", modelled.results, "measured"),
            ("workspace", modelled.workspace, "modelled"),
        ]
        unwanted = ("results",) if self.train else ("gradients", "optimizer")
        sizes = [each for each in sizes if each[0] not in unwanted]
        return {
            "parts": [
                {"name": name, "bytes": size, "how": how, "note": ""} for name, size, how in sizes
            ],
            "peak_bytes": sum(size for _, size, _ in sizes),
            "notes": [NOT_MEASURED],
            "source": "TensorFlow %s: a model of how a GPU runs the program that it makes"
            % tensorflow.__version__,
        }

    def _text(self, data, specs):
        """The step as a program for XLA."""
        import tensorflow

        def step(*leaves):
            packed = tensorflow.nest.pack_sequence_as(data, leaves)
            return self.model.train_step(packed) if self.train else self.model.predict_step(packed)

        compiled = tensorflow.function(step, jit_compile=True)
        try:
            return compiled.experimental_get_compiler_ir(*specs)(stage="hlo")
        except (tensorflow.errors.OpError, NotImplementedError, TypeError, ValueError) as error:
            raise Unusable(
                "TensorFlow cannot write this model down as a program for XLA: %s"
                % str(error).splitlines()[0]
            )


def _leaves(tree):
    import tensorflow

    return tensorflow.nest.flatten(tree)


def _bytes(variables):
    return sum(_size(each.shape, each.dtype) for each in variables)


def _size(shape, dtype):
    import tensorflow

    count = 1
    for each in shape:
        count *= int(each)
    return count * tensorflow.as_dtype(dtype).size


def _obstacle(model):
    """Why Keras would not have XLA compile the model on a GPU; empty where it would."""
    if getattr(model, "run_eagerly", False):
        return "it is told to run eagerly"
    for layer in all_layers(model):
        if not getattr(layer, "supports_jit", True):
            return "its layer %s" % layer.name
        if _is_for_cudnn(layer):
            return "its layer %s goes to cuDNN" % layer.name
    return ""


def _is_for_cudnn(layer):
    """Keras gives an LSTM or GRU of the usual kind to cuDNN, which XLA knows nothing of."""
    cell = getattr(layer, "cell", None)
    if type(layer).__name__ not in ("LSTM", "GRU") or not getattr(layer, "use_cudnn", False):
        return False
    usual = [getattr(cell, name, None) for name in ("activation", "recurrent_activation")]
    names = [getattr(function, "__name__", "") for function in usual]
    return names == ["tanh", "sigmoid"] and cell.use_bias and not layer.unroll
