"""Guards `fit`: replaces the functions that a Keras model trains with while the guard is on."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from types import FrameType
from typing import Any, Literal

from whygpu.errors import UsageError
from whygpu.guard.keras_engine import Engine, is_keras_own
from whygpu.guard.keras_step import KerasStep
from whygpu.guard.splitting import Splitter

Kind = Literal["train", "test"]


class KerasFit:
    """One model under guard, between `on` and `off`."""

    def __init__(
        self,
        model: Any,
        training: Splitter,
        evaluation: Splitter,
        lasts: Callable[[], bool] | None = None,
    ) -> None:
        """`lasts` is called before each `fit` and `evaluate`: False switches the guard off."""
        self._keras: Any = sys.modules["keras"]
        self._model = model
        self._lasts = lasts
        self._splitters = training, evaluation
        refuse_unguardable(self._keras, model)

    def on(self) -> None:
        """From now on `fit` makes our functions, and makes them anew after another `compile`."""
        self._take_over("train")
        if is_keras_own(self._model, "test_step"):
            self._take_over("test")

    def off(self) -> None:
        for kind in ("train", "test"):
            vars(self._model).pop(f"make_{kind}_function", None)
            setattr(self._model, f"{kind}_function", None)

    def _take_over(self, kind: Kind) -> None:
        name = f"{kind}_function"

        def make(force: bool = False) -> Any:
            if self._lasts is not None and not self._lasts():
                self.off()
                return getattr(self._model, f"make_{name}")(force)
            if force or getattr(self._model, name) is None:
                setattr(self._model, name, self._function(kind))
            return getattr(self._model, name)

        # Not through Keras, which would track the value as a part of the model.
        object.__setattr__(self._model, f"make_{name}", make)
        setattr(self._model, name, None)

    def _function(self, kind: Kind) -> Callable[..., Any]:
        refuse_unguardable(self._keras, self._model)
        function = _Function(self._keras, self._model, kind, *self._splitters)
        shapes: dict[str, Callable[..., Any]] = {
            "jax": function.on_jax,
            "tensorflow": function.on_tensorflow,
            "torch": function.on_torch,
        }
        return shapes[self._keras.backend.backend()]


class _Function:
    """What `fit` or `evaluate` calls for its batches, in the shape of each backend."""

    def __init__(
        self, keras: Any, model: Any, kind: Kind, training: Splitter, evaluation: Splitter
    ) -> None:
        self._keras = keras
        self._model = model
        self._kind = kind
        self._splitters = training, evaluation
        self._step: KerasStep | None = None

    def on_torch(self, batches: Iterable[Any]) -> Any:
        return self._each(self._ready(), batches)

    def on_tensorflow(self, iterator: Iterator[Any]) -> Any:
        first = _without_optionals(self._keras, next(iterator))
        if self._step is None:
            # Create all variables before the first step, so that a failed step can be undone.
            # On the other backends, `fit` has done that.
            self._model._symbolic_build(data_batch=first)
        step = self._ready()
        engine: Any = step.engine
        engine.counts_rows = _knows_rows(self._keras, iterator)
        more = (_without_optionals(self._keras, batch) for batch in self._rest(iterator))
        return self._each(step, chain([first], more))

    def on_jax(self, state: Any, iterator: Iterator[Any]) -> Any:
        first = next(iterator)
        step = self._ready()
        engine: Any = step.engine
        engine.take(state)
        try:
            logs = self._each(step, chain([first], self._rest(iterator)))
        except BaseException:
            engine.hand_back()
            raise
        return logs, engine.given(len(state))

    def _each(self, step: KerasStep, batches: Iterable[Any]) -> Any:
        logs = None
        for batch in batches:
            logs = step.train(batch) if self._kind == "train" else step.evaluate(batch)
        return logs

    def _rest(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """The other batches that Keras would run together with the first."""
        return islice(iterator, self._model.steps_per_execution - 1)

    def _ready(self) -> KerasStep:
        if self._step is None:
            engine = _engine(self._keras, self._model)
            self._step = KerasStep(self._keras, engine, *self._splitters)
        return self._step


def in_fit(callback: Any) -> bool:
    """Whether a `fit` with this callback is running, in any thread.

    Keras does not call callbacks at the end of a `fit` that fails.
    """
    keras: Any = sys.modules["keras"]
    collects = gc.isenabled()
    # In Python 3.11, frames of other threads must not be looked at while finalizers run, which let
    # those threads go on (bootstrap/.../profile/held_collector.py).
    gc.disable()
    try:
        return any(_is_fit_with(keras, callback, frame) for frame in _frames_of_all_threads())
    finally:
        if collects:
            gc.enable()


def _frames_of_all_threads() -> Iterator[FrameType]:
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            yield frame
            frame = frame.f_back


def _is_fit_with(keras: Any, callback: Any, frame: FrameType) -> bool:
    if frame.f_code.co_name != "fit":
        return False
    lists = (each for each in frame.f_locals.values() if _is_list(keras, each))
    return any(each is callback for callbacks in lists for each in callbacks.callbacks)


def _is_list(keras: Any, value: Any) -> bool:
    return isinstance(value, keras.callbacks.CallbackList)


def _engine(keras: Any, model: Any) -> Engine:
    backend = keras.backend.backend()
    if backend == "jax":
        from whygpu.guard.keras_jax import JaxEngine

        return JaxEngine(keras, model)
    if backend == "torch":
        from whygpu.guard.keras_torch import TorchEngine

        return TorchEngine(keras, model)
    from whygpu.guard.keras_tensorflow import TensorFlowEngine

    return TensorFlowEngine(keras, model)


def _without_optionals(keras: Any, batch: Any) -> Any:
    """TensorFlow's datasets have no None; Keras puts an Optional in its place."""
    optional = sys.modules["tensorflow"].experimental.Optional
    return keras.tree.map_structure(
        lambda leaf: None if isinstance(leaf, optional) else leaf, batch
    )


def _knows_rows(keras: Any, iterator: Any) -> bool:
    """Whether a batch's number of samples is part of the type of what an iterator gives."""
    specs = keras.tree.flatten(getattr(iterator, "element_spec", None))
    shapes = [spec.shape for spec in specs if hasattr(spec, "shape")]
    return all(not shape.rank or shape[0] is not None for shape in shapes)


# What can be guarded


def is_keras_model(item: Any) -> bool:
    keras: Any = sys.modules.get("keras")
    return keras is not None and hasattr(keras, "ops") and isinstance(item, keras.Model)


def refuse_old_keras(item: Any) -> None:
    """Keras 2, as tf_keras or under its own name, has training functions of another kind."""
    for kind in type(item).__mro__:
        if kind.__module__.startswith(("tf_keras.", "keras.engine.", "keras.src.engine.")):
            raise UsageError("this is a Keras 2 model: the guard needs Keras 3")


def refuse_unguardable(keras: Any, model: Any) -> None:
    name = type(model).__name__
    backend = keras.backend.backend()
    if backend not in ("jax", "tensorflow", "torch"):
        raise UsageError(f"Keras runs on {backend}, which cannot train")
    for method in ("train_step", "make_train_function", "compute_loss_and_updates"):
        if not is_keras_own(model, method):
            raise UsageError(
                f"{name} defines its own {method}(). Only Keras's own training step is known to "
                "give the same result in parts. Put your own loss into compute_loss(): the guard "
                "calls it as Keras does"
            )
    if backend == "tensorflow" and _has_strategy(model):
        raise UsageError("the model trains under tf.distribute: the guard works only on one device")
    if backend == "jax" and keras.distribution.distribution() is not None:
        raise UsageError(
            "the model trains under keras.distribution: the guard works only on one device"
        )
    if model.compiled and model.optimizer is None:
        raise UsageError(f"{name} has no optimizer: there is no training to guard")


def _has_strategy(model: Any) -> bool:
    tensorflow: Any = sys.modules["tensorflow"]
    return model._distribute_strategy is not None or bool(tensorflow.distribute.has_strategy())
