"""Estimates the GPU memory of a Keras model on TensorFlow by a model, without a GPU.

On a GPU, Keras has TensorFlow hand the step of `fit` or `predict` to XLA (`jit_compile="auto"`)
where all layers allow it; the program that XLA would be given is then what is looked at. Else
TensorFlow runs its graph operation by operation, and the graph is looked at.
"""

import contextlib
import sys
import warnings

from ..loading import CannotTell, need_keras_3
from ..work_keras import all_layers
from . import jit_choice, tensorflow_graph, tensorflow_margins
from .keras_model import prepared
from .xla import program_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Iterator

    from .margins import Margins

CAPABILITY = (9, 0)
"""The compute capability that is assumed if none is given."""
RECURRENT, GPU_QUESTION = "keras.src.backend.tensorflow.rnn", "_is_gpu_available"
"""Where Keras asks whether it can use cuDNN."""
AHEAD = 4
"""Batches that `fit` and `predict` have on the GPU beside the one that they work on: three or four
on an NVIDIA H200."""
EMBEDDING_COPIES = 2
"""Copies of the weights of an embedding that its update takes with XLA, beside its gradient:
measured for a table of 49 MiB on an NVIDIA H200."""
NOTES = {"inputs": "%d batches: fit and predict prepare the next ones" % (1 + AHEAD)}
MODELLED = (
    "The figures for TensorFlow come from a model of the program that it would give to XLA. In its "
    "first step, XLA tries algorithms and takes several times as much if it is free; it does "
    "without if it is not."
)
NOT_COMPILED = (
    "XLA does not compile this model (%s). TensorFlow then runs it operation by operation, and the "
    "figures are for the arrays that exist at the same time and the working memory of cuDNN."
)
WITH_CONVOLUTIONS = (
    "For convolutions, TensorFlow chooses algorithms on the GPU by their speed and the memory that "
    "is free: on an NVIDIA H200 it took up to 2.7 times the arrays. `whygpu memory find` measures."
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
        self.model, self.train = model, train
        self._capability = gpu or CAPABILITY
        self._tell = tell or (lambda text: None)
        self._inputs, self._targets = prepared(model, train, optimizer, mixed, shapes)
        if train:
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
            ("inputs", (1 + AHEAD) * sum(map(_bytes_of, specs)), "measured"),
            ("results", temporary.results, "measured"),
            ("workspace", temporary.workspace, "modelled"),
        ]
        unwanted = ("results",) if self.train else ("gradients", "optimizer")
        sizes = [each for each in sizes if each[0] not in unwanted]
        least, most = temporary.margins.around({name: size for name, size, _ in sizes})
        return {
            "parts": [
                {"name": name, "bytes": size, "how": how, "note": NOTES.get(name, "")}
                for name, size, how in sizes
            ],
            "peak_bytes": sum(size for _, size, _ in sizes),
            "least_bytes": least,
            "most_bytes": most,
            "notes": self._notes(temporary.margins),
            "source": "TensorFlow %s: a model of how a GPU runs the program that it makes"
            % tensorflow.__version__,
        }

    def _notes(self, margins: "Margins") -> "list[str]":
        if not self._not_compiled:
            return [MODELLED]
        notes = [NOT_COMPILED % self._not_compiled]
        return notes + [WITH_CONVOLUTIONS] if margins is tensorflow_margins.CONVOLUTIONS else notes

    def _by_xla(self, data: "Any", specs: "Any") -> "_Temporary":
        modelled = program_memory.model(self._text(data, specs), self._capability)
        shapes = [each.shape for each in self.model.trainable_variables]
        gradients = min(modelled.size, modelled.gradients(shapes)) if self.train else 0
        copies = EMBEDDING_COPIES * _bytes(_embeddings(self.model)) if self.train else 0
        return _Temporary(
            gradients + copies,
            modelled.size - gradients,
            modelled.results,
            modelled.workspace,
            tensorflow_margins.XLA,
        )

    def _by_operation(self, data: "Any", specs: "Any") -> "_Temporary":
        graph = self._graph(data, specs)
        peak = tensorflow_graph.at_peak(graph)
        arrays = peak.arrays
        weights = {tuple(each.shape) for each in self.model.trainable_variables}
        results = sum(each.size for each in arrays if each.is_result)
        others = [each for each in arrays if not each.is_result]
        gradients = sum(each.size for each in others if self.train and each.shape in weights)
        activations = sum(each.size for each in others) - gradients
        if self.train:
            # What the step returns: a few numbers.
            activations, results = activations + results, 0
        margins = tensorflow_margins.of_graph(graph)
        return _Temporary(gradients, activations, results, peak.workspace, margins)

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
            with _as_on_gpu():
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
                "TensorFlow cannot convert this model into a program for XLA: %s"
                % str(error).splitlines()[0]
            )


class _Temporary(object):
    """Bytes that exist at the peak in addition to what stays allocated."""

    def __init__(
        self,
        gradients: int,
        activations: int,
        results: int,
        workspace: int,
        margins: "Margins",
    ) -> None:
        self.gradients = gradients
        self.activations = activations
        self.results = results
        self.workspace = workspace
        self.margins = margins


def _leaves(tree: "Any") -> "Any":
    import tensorflow

    return tensorflow.nest.flatten(tree)


def _bytes(variables: "Iterable[Any]") -> int:
    return sum(map(_bytes_of, variables))


def _bytes_of(array: "Any") -> int:
    import tensorflow

    count = 1
    for each in array.shape:
        count *= int(each)
    return count * tensorflow.as_dtype(array.dtype).size


def _embeddings(model: "Any") -> "list[Any]":
    """The trainable weights of its embeddings."""
    layers = [each for each in all_layers(model) if type(each).__name__ == "Embedding"]
    return [weight for layer in layers for weight in layer.trainable_variables]


def _obstacle(model: "Any") -> str:
    """What cannot be modelled without a GPU; empty if there is nothing."""
    if getattr(model, "run_eagerly", False):
        return "run_eagerly is set"
    for layer in all_layers(model):
        if _is_for_cudnn(layer) and not hasattr(sys.modules.get(RECURRENT), GPU_QUESTION):
            return "its layer %s uses cuDNN" % layer.name
    return ""


def _why_not_compiled(model: "Any") -> str:
    """Why Keras would not let XLA compile the model on a GPU; empty if it would."""
    for layer in all_layers(model):
        if _is_for_cudnn(layer):
            return "its layer %s uses cuDNN" % layer.name
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


@contextlib.contextmanager
def _as_on_gpu() -> "Iterator[None]":
    """Let Keras make the graph that it would make on a GPU: recurrent layers for cuDNN."""
    module: "Any" = sys.modules.get(RECURRENT)
    asked = getattr(module, GPU_QUESTION, None)
    if asked is None:
        yield
        return
    setattr(module, GPU_QUESTION, lambda: True)
    try:
        yield
    finally:
        setattr(module, GPU_QUESTION, asked)


def _is_for_cudnn(layer: "Any") -> bool:
    """Keras uses cuDNN for an LSTM or GRU with default settings; XLA does not see that work."""
    cell: "Any" = getattr(layer, "cell", None)
    if type(layer).__name__ not in ("LSTM", "GRU") or not getattr(layer, "use_cudnn", False):
        return False
    usual = [getattr(cell, name, None) for name in ("activation", "recurrent_activation")]
    names = [getattr(function, "__name__", "") for function in usual]
    return names == ["tanh", "sigmoid"] and cell.use_bias and not layer.unroll
