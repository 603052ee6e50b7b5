"""Estimates the GPU memory of a Keras model on JAX, or of a JAX function, without a GPU.

The program that `fit` or `predict` would run is traced with shapes instead of arrays. If JAX's CUDA
plugin is installed, XLA's GPU compiler reports what the program needs; otherwise the choices of the
compiler are modelled from the program's text.
"""

import contextlib

from ..loading import Unusable
from . import jax_margins
from .keras_model import prepared
from .xla import program_memory
from .xla.compile import Compiler
from .xla.libraries import as_on_gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

NOT_COUNTED = (
    "While a program is compiled for the first time, XLA tries out algorithms on the GPU and takes "
    "more for a while if it is free, several GiB for convolutions."
)

MARGIN = (
    "The range allows for what was measured on an NVIDIA H200: JAX took more than such an "
    "estimate, and its allocator up to one block of 128 MiB besides."
)
KEPT = (
    "`predict` keeps the outputs of all batches on the GPU until its end, %s for each: the range "
    "is for up to %d batches. `predict_on_batch` keeps one."
)

WORKSPACE = "by which cuBLAS and cuDNN raise the peak; they choose on the GPU"


class _Estimator(object):
    """What all programs share: tracing, asking the compiler, and the model if there is none."""

    def __init__(
        self,
        gpu: "tuple[int, int] | None" = None,
        tell: "Callable[[str], None] | None" = None,
        host: bool = False,
    ) -> None:
        self.compiler = Compiler(gpu, host)
        self._host = host
        self.notes: "list[str]" = []
        self._tell = tell or (lambda text: None)

    def _lowered(self, jitted: "Any", arguments: "Any") -> "Any":
        """The program for a GPU, traced as it would be on one."""
        if self.compiler.tries_things_out:
            return jitted.lower(*arguments)
        with as_on_gpu(self.compiler.capability):
            if self.compiler.device is not None or not hasattr(jitted, "trace"):
                return jitted.lower(*arguments)
            traced = jitted.trace(*arguments)
            try:
                return traced.lower(lowering_platforms=("cuda",))
            except (ImportError, NotImplementedError, RuntimeError, ValueError) as error:
                self._note("traced for the CPU: %s" % str(error).splitlines()[0])
                return traced.lower()

    def _abstract(self, shape: "Iterable[int]", dtype: "Any") -> "Any":
        import jax

        if self.compiler.device is None:
            return jax.ShapeDtypeStruct(tuple(shape), dtype)
        where = jax.sharding.SingleDeviceSharding(self.compiler.device)
        return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=where)

    def _temporary(self, lowered: "Any", thorough: bool = True) -> "_Temporary":
        """What the compiler reports; without a compiler, what the model says."""
        modelled, size = None, None
        try:
            modelled = program_memory.model(_text(lowered), self.compiler.capability)
        except Unusable as error:
            if self.compiler.device is None:
                raise
            self._note(str(error))
        if self.compiler.device is not None:
            self._tell("asking XLA's compiler")
            try:
                size = self.compiler.temporary(lowered, thorough)
            except (NotImplementedError, RuntimeError, ValueError) as error:
                if modelled is None:
                    raise
                self._note("XLA's GPU compiler failed: %s" % str(error).splitlines()[0])
        return _Temporary(size, modelled, self.compiler.tries_things_out)

    def _source(self, how: str) -> str:
        import jax

        if how == "compiled":
            return "JAX %s: %s" % (jax.__version__, self.compiler.words)
        return "JAX %s: a model of XLA's GPU compiler, on the program that JAX makes" % (
            jax.__version__
        )

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _answer(
        self,
        parts: "list[dict[str, Any]]",
        how: str,
        train: bool = False,
        lasting: "Iterable[str]" = (),
        kept: int = 0,
    ) -> "dict[str, Any]":
        """`lasting` parts have a known size, in addition to weights and optimizer; `kept` bytes of
        outputs stay for each batch that follows."""
        if how == "modelled" and self.compiler.without:
            self._note(
                "XLA's GPU compiler gives exact figures. It comes with JAX's CUDA plugin, which "
                "needs no GPU (%s)." % self.compiler.without
            )
        answer = {
            "parts": parts,
            "peak_bytes": sum(part["bytes"] for part in parts),
            "notes": self.notes + [NOT_COUNTED],
            "source": self._source(how),
        }
        if self._host:
            return answer
        sizes = {"weights": 0}
        for part in parts:
            name = "weights" if part["name"] in lasting else part["name"]
            sizes[name] = sizes.get(name, 0) + part["bytes"]
        least, most = jax_margins.around(sizes, how, train)
        most += (jax_margins.KEPT_OUTPUTS - 1) * kept
        notes = [MARGIN] + ([KEPT % (_size_text(kept), jax_margins.KEPT_OUTPUTS)] if kept else [])
        return dict(answer, least_bytes=least, most_bytes=most, notes=answer["notes"] + notes)


class _Temporary(object):
    """Memory in addition to arguments and results, from the compiler if there is one."""

    def __init__(self, compiled: "int | None", modelled: "Any", tried_out: bool) -> None:
        self.how = "modelled" if compiled is None else "compiled"
        self.size = modelled.size if compiled is None else compiled
        self.workspace = 0 if modelled is None or tried_out else modelled.workspace
        self._modelled = modelled

    def gradients(self, shapes: "Any") -> int:
        return 0 if self._modelled is None else min(self.size, self._modelled.gradients(shapes))


class KerasEstimator(_Estimator):
    """`optimizer` is a name that Keras knows, or None for the model's own; with `host`, it runs on
    the CPU."""

    def __init__(
        self,
        model: "Any",
        train: bool = True,
        optimizer: "str | None" = None,
        mixed: bool = False,
        shapes: "str | None" = None,
        gpu: "tuple[int, int] | None" = None,
        tell: "Callable[[str], None] | None" = None,
        host: bool = False,
    ) -> None:
        super(KerasEstimator, self).__init__(gpu, tell, host)
        if train and not getattr(model, "compiled", False):
            self._note("The model was not compiled with a loss; mean squared error is assumed.")
        self.model, self.train = model, train
        self._inputs, self._targets = prepared(model, train, optimizer, mixed, shapes)
        if train:
            _build_optimizer(model)
        if getattr(model, "run_eagerly", False) or getattr(model, "jit_compile", True) is False:
            self._note("The model has jit_compile=False; the figures are for a compiled model.")

    def at(self, batch: int) -> "dict[str, Any]":
        import jax

        self._tell("tracing a batch of %d" % batch)
        inputs = self._rows(self._inputs, batch)
        data = (inputs, self._rows(self._targets, batch)) if self.train else (inputs,)
        if self.train:
            self._build_metrics(data)
        model = self.model
        weights = self._state(model.trainable_variables)
        fixed = self._state(model.non_trainable_variables)
        state: "tuple[Any, ...]" = (weights, fixed)
        step = self._predict_step
        optimizer: "list[Any]" = []
        if self.train:
            optimizer = self._state(model.optimizer.variables)
            state += (optimizer, self._state(model.metrics_variables))
            step = model.train_step
        lowered = self._lowered(jax.jit(step, donate_argnums=0), (state, data))
        # A training step takes long to compile, and depends less on trials on the GPU.
        temporary = self._temporary(lowered, thorough=not self.train)
        results = jax.eval_shape(step, state, data)[0]
        # The next batch is copied to the GPU while one is processed.
        return self._answer(
            self._parts(
                temporary,
                _bytes(state) - _bytes(optimizer),
                _bytes(optimizer),
                2 * _bytes(data),
                _bytes(results),
            ),
            temporary.how,
            self.train,
            kept=0 if self.train else _bytes(results),
        )

    def _predict_step(self, state: "Any", data: "Any") -> "tuple[Any, tuple[Any, Any]]":
        outputs, fixed = self.model.predict_step(state, data)
        return outputs, (state[0], fixed)

    def _parts(
        self, temporary: "_Temporary", weights: int, optimizer: int, inputs: int, results: int
    ) -> "list[dict[str, Any]]":
        shapes = [each.shape for each in self.model.trainable_variables]
        gradients = temporary.gradients(shapes) if self.train else 0
        parts = [_part("weights", weights, "measured")]
        if self.train:
            words = "those that exist at the peak; each is used as soon as it is computed"
            parts.append(_part("gradients", gradients, "modelled", words))
            parts.append(_part("optimizer", optimizer, "measured"))
        parts.append(_part("activations", temporary.size - gradients, temporary.how))
        parts.append(_part("inputs", inputs, "measured", "this batch and the next"))
        words = (
            "" if self.train else "for one batch; predict keeps those of all batches until the end"
        )
        parts.append(_part("results", results, "measured", words))
        parts.append(_part("workspace", temporary.workspace, "modelled", WORKSPACE))
        return parts

    def _build_metrics(self, data: "Any") -> None:
        """Create the variables of the loss and of the metrics, as `fit` does at its first batch."""
        self.model._symbolic_build(data_batch=data + (None,))

    def _state(self, variables: "Any") -> "list[Any]":
        return [self._abstract(each.shape, each.dtype) for each in variables]

    def _rows(self, tree: "Any", count: int) -> "Any":
        import jax

        return jax.tree_util.tree_map(
            lambda array: self._abstract((count,) + array.shape[1:], array.dtype), tree
        )


class FunctionEstimator(_Estimator):
    """A JAX function with the arguments that it is called with."""

    def __init__(
        self,
        function: "Callable[..., Any]",
        arguments: "Any",
        gpu: "tuple[int, int] | None" = None,
        tell: "Callable[[str], None] | None" = None,
    ) -> None:
        super(FunctionEstimator, self).__init__(gpu, tell)
        self._function = function
        given = isinstance(arguments, (tuple, list))
        self._arguments = tuple(arguments) if given else (arguments,)

    def at(self) -> "dict[str, Any]":
        import jax

        self._tell("tracing the function")
        arguments = jax.tree_util.tree_map(self._described, self._arguments)
        jitted = self._function if hasattr(self._function, "trace") else jax.jit(self._function)
        lowered = self._lowered(jitted, arguments)
        temporary = self._temporary(lowered)
        results = _bytes(lowered.out_info)
        words = "temporary arrays"
        parts = [
            _part("inputs", _bytes(arguments), "measured", "the function's arguments"),
            _part("activations", temporary.size, temporary.how, words),
            _part("results", results - _donated(lowered, results), "measured"),
            _part("workspace", temporary.workspace, "modelled", WORKSPACE),
        ]
        return self._answer(parts, temporary.how, lasting=("inputs",))

    def _described(self, leaf: "Any") -> "Any":
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            return leaf
        return self._abstract(leaf.shape, leaf.dtype)


def _size_text(size: int) -> str:
    mebibytes = size / float(1 << 20)
    return "%.3g MiB" % mebibytes if mebibytes >= 0.1 else "%d bytes" % size


def _part(name: str, size: float, how: str, note: str = "") -> "dict[str, Any]":
    return {"name": name, "bytes": int(size), "how": how, "note": note}


def _donated(lowered: "Any", results: int) -> int:
    """Bytes of results that reuse the memory of arguments."""
    import jax

    arguments = jax.tree_util.tree_leaves(lowered.args_info)
    given = sum(_size(each) for each in arguments if each.donated)
    return min(given, results)


def _bytes(tree: "Any") -> int:
    import jax

    return sum(_size(leaf) for leaf in jax.tree_util.tree_leaves(tree))


def _size(leaf: "Any") -> int:
    import jax
    import numpy

    if not hasattr(leaf, "dtype"):
        return 0
    count = 1
    for each in leaf.shape:
        count *= each
    with contextlib.suppress(TypeError):
        return count * numpy.dtype(leaf.dtype).itemsize
    # A random key, which has a type of JAX.
    return count * jax.random.key_data(jax.random.key(0)).nbytes


def _text(lowered: "Any") -> str:
    try:
        return lowered.as_text("hlo")
    except TypeError:
        return lowered.compiler_ir(dialect="hlo").as_hlo_text()


def _build_optimizer(model: "Any") -> None:
    """Create the optimizer's variables, without memory if possible."""
    import keras
    from keras.src.backend.common.stateless_scope import StatelessScope

    if model.optimizer.built:
        return
    as_it_was = keras.optimizers.serialize(model.optimizer)
    try:
        with StatelessScope(initialize_variables=False):
            model.optimizer.build(model.trainable_variables)
    except ValueError:
        # Some optimizers compute variables from values, which do not exist there.
        model.optimizer = keras.optimizers.deserialize(as_it_was)
        model.optimizer.build(model.trainable_variables)
