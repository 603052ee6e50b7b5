"""Estimates the GPU memory of a Keras model on TensorFlow by a model, without a GPU.

On a GPU, Keras has TensorFlow hand the step of `fit` or `predict` to XLA (`jit_compile="auto"`)
where all layers allow it; the program that XLA would be given is then what is looked at. Else
TensorFlow runs its graph operation by operation, and the graph is looked at.
"""

import warnings

from ..loading import CannotTell, Unusable, need_keras_3
from ..work_keras import KerasWork, all_layers
from . import jit_choice, tensorflow_graph
from .half_precision import in_half_precision
from .xla import program_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

FEW = 2
"""Rows of the arrays from which shapes and types are read."""
CAPABILITY = (9, 0)
"""The compute capability that is assumed if none is given."""
LEAST, MOST = 0.85, 6.2
"""What a GPU took, in multiples of the estimate: 16 steps of Keras on TensorFlow 2.21 on an NVIDIA
H200."""
COMPARED = (
    "On an NVIDIA H200, TensorFlow 2.21 took 1.0 to 1.9 times these figures for dense layers, 0.9 "
    "to 2.1 times for attention and 3.4 to 6.2 times for convolutions, because cuDNN's workspaces "
    "are chosen on the GPU. `whygpu memory find` measures."
)
MODELLED = (
    "The figures for TensorFlow come from a model of the program that it would give to XLA. "
    + COMPARED
)
NOT_COMPILED = (
    "XLA does not compile this model (%s). TensorFlow then runs it operation by operation, and the "
    "figures are for the arrays that exist at the same time. The working memory of cuDNN is not "
    "included. " + COMPARED
)


class KerasEstimator(object):
    """`optimizer` is a name that Keras knows, or None for the model's own."""

    def __init__(
        self,
        model: "Any",
        train: bool = True,
        optimizer: "str | None" = None,
        mixed: bool = False,
        shapes: "str | None" = None,
        gpu: "tuple[int, int] | None" = None,
        tell: "Callable[[str], None] | None" = None,
    ) -> None:
        need_keras_3()
        obstacle = _obstacle(model)
        if obstacle:
            raise CannotTell(
                "on a GPU, TensorFlow would run this model in a way that cannot be "
                "followed without one (%s); on JAX or PyTorch it can" % obstacle
            )
        self._not_compiled = _why_not_compiled(model)
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

    def at(self, batch: int) -> "dict[str, Any]":
        import tensorflow

        self._tell("tracing a batch of %d: a minute for a large model" % batch)
        data = (self._inputs, self._targets) if self.train else (self._inputs,)
        specs = [
            tensorflow.TensorSpec((batch,) + leaf.shape[1:], leaf.dtype) for leaf in _leaves(data)
        ]
        temporary = (
            self._by_operation(data, specs) if self._not_compiled else self._by_xla(data, specs)
        )
        optimizer = self.model.optimizer.variables if self.train else []
        sizes = [
            ("weights", _bytes(self.model.variables), "measured"),
            ("gradients", temporary.gradients, "modelled"),
            ("optimizer", _bytes(optimizer), "measured"),
            ("activations", temporary.activations, "modelled"),
            ("inputs", sum(_size(each.shape, each.dtype) for each in specs), "measured"),
            ("results", temporary.results, "measured"),
            ("workspace", temporary.workspace, "modelled"),
        ]
        unwanted = ("results",) if self.train else ("gradients", "optimizer")
        sizes = [each for each in sizes if each[0] not in unwanted]
        peak = sum(size for _, size, _ in sizes)
        return {
            "parts": [
                {"name": name, "bytes": size, "how": how, "note": ""} for name, size, how in sizes
            ],
            "peak_bytes": peak,
            "least_bytes": LEAST * peak,
            "most_bytes": MOST * peak,
            "notes": [NOT_COMPILED % self._not_compiled if self._not_compiled else MODELLED],
            "source": "TensorFlow %s: a model of how a GPU runs the program that it makes"
            % tensorflow.__version__,
        }

    def _by_xla(self, data: "Any", specs: "Any") -> "_Temporary":
        modelled = program_memory.model(self._text(data, specs), self._capability)
        shapes = [each.shape for each in self.model.trainable_variables]
        gradients = min(modelled.size, modelled.gradients(shapes)) if self.train else 0
        return _Temporary(
            gradients, modelled.size - gradients, modelled.results, modelled.workspace
        )

    def _by_operation(self, data: "Any", specs: "Any") -> "_Temporary":
        arrays = tensorflow_graph.at_peak(self._graph(data, specs))
        weights = {tuple(each.shape) for each in self.model.trainable_variables}
        results = sum(each.size for each in arrays if each.is_result)
        others = [each for each in arrays if not each.is_result]
        gradients = sum(each.size for each in others if self.train and each.shape in weights)
        activations = sum(each.size for each in others) - gradients
        if self.train:
            # What the step returns: a few numbers.
            activations, results = activations + results, 0
        return _Temporary(gradients, activations, results, 0)

    def _step(self, data: "Any") -> "Callable[..., Any]":
        import tensorflow

        def step(*leaves: "Any") -> "Any":
            packed = tensorflow.nest.pack_sequence_as(data, leaves)
            return self.model.train_step(packed) if self.train else self.model.predict_step(packed)

        return step

    def _graph(self, data: "Any", specs: "Any") -> "Any":
        """The step as operations, including those of the model's own functions."""
        import tensorflow

        before = tensorflow.config.functions_run_eagerly()
        tensorflow.config.run_functions_eagerly(True)
        try:
            return tensorflow.function(self._step(data)).get_concrete_function(*specs).graph
        finally:
            tensorflow.config.run_functions_eagerly(before)

    def _text(self, data: "Any", specs: "Any") -> str:
        """The step as a program for XLA."""
        import tensorflow

        compiled = tensorflow.function(self._step(data), jit_compile=True)
        try:
            return compiled.experimental_get_compiler_ir(*specs)(stage="hlo")
        except (tensorflow.errors.OpError, NotImplementedError, TypeError, ValueError) as error:
            raise CannotTell(
                "TensorFlow cannot write this model down as a program for XLA: %s"
                % str(error).splitlines()[0]
            )


class _Temporary(object):
    """Bytes that exist at the peak in addition to what stays allocated."""

    def __init__(self, gradients: int, activations: int, results: int, workspace: int) -> None:
        self.gradients = gradients
        self.activations = activations
        self.results = results
        self.workspace = workspace


def _leaves(tree: "Any") -> "Any":
    import tensorflow

    return tensorflow.nest.flatten(tree)


def _bytes(variables: "Any") -> int:
    return sum(_size(each.shape, each.dtype) for each in variables)


def _size(shape: "Iterable[int]", dtype: "Any") -> int:
    import tensorflow

    count = 1
    for each in shape:
        count *= int(each)
    return count * tensorflow.as_dtype(dtype).size


def _obstacle(model: "Any") -> str:
    """What cannot be modelled without a GPU; empty if there is nothing."""
    if getattr(model, "run_eagerly", False):
        return "run_eagerly is set"
    for layer in all_layers(model):
        if _is_for_cudnn(layer):
            return "its layer %s uses cuDNN" % layer.name
    return ""


def _why_not_compiled(model: "Any") -> str:
    """Why Keras would not let XLA compile the model on a GPU; empty if it would."""
    for layer in all_layers(model):
        if not getattr(layer, "supports_jit", True):
            return "its layer %s does not allow it" % layer.name
    chosen = jit_choice.of(model)
    if not chosen:
        return "jit_compile is off"
    if chosen == "auto" and getattr(model, "_distribute_strategy", None):
        return "it is under tf.distribute"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, model.jit_compile = model.jit_compile, True
        taken, model.jit_compile = model.jit_compile, before
    return "" if taken else "deterministic operations are required"


def _is_for_cudnn(layer: "Any") -> bool:
    """Keras uses cuDNN for an LSTM or GRU with default settings; XLA does not see that work."""
    cell: "Any" = getattr(layer, "cell", None)
    if type(layer).__name__ not in ("LSTM", "GRU") or not getattr(layer, "use_cudnn", False):
        return False
    usual = [getattr(cell, name, None) for name in ("activation", "recurrent_activation")]
    names = [getattr(function, "__name__", "") for function in usual]
    return names == ["tanh", "sigmoid"] and cell.use_bias and not layer.unroll
