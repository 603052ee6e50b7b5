"""whygpu.oom_guard() and whygpu.OomGuard(): what a program calls to survive a lack of memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from whygpu.errors import UsageError
from whygpu.guard.guard_report import GuardReport, Record, say
from whygpu.guard.jax_loop import JaxLoop
from whygpu.guard.keras_fit import KerasFit, in_fit, is_keras_model, refuse_old_keras
from whygpu.guard.splitting import Splitter
from whygpu.guard.tensorflow_loop import TensorFlowLoop
from whygpu.guard.tensorflow_waits import refuse_at_once
from whygpu.guard.torch_gradients import Work
from whygpu.guard.torch_loop import TorchLoop

_GUARDS_NOTHING = (
    "oom_guard() has guarded nothing: pass it the Keras model, `with whygpu.oom_guard(model):`. In "
    "your own loop, call guard.backward() (PyTorch), guard.value_and_grad() (JAX) or "
    "guard.gradients() (TensorFlow)"
)


class Guard:
    """Made by whygpu.oom_guard(). `report` says what it did."""

    def __init__(
        self,
        objects: Sequence[Any],
        *,
        micro_batch: int | None,
        check: bool,
        exact: bool,
        lasts: Callable[[], bool] | None = None,
    ) -> None:
        self._record = Record()
        self._training = Splitter(self._record, micro_batch=micro_batch, exact=exact, of="training")
        self._evaluation = Splitter(self._record, exact=exact, of="evaluation")
        self._check = check
        for item in objects:
            refuse_old_keras(item)
        self._models = [
            KerasFit(item, self._training, self._evaluation, lasts)
            for item in objects
            if is_keras_model(item)
        ]
        self._others = [item for item in objects if not is_keras_model(item)]
        self._torch_loop: TorchLoop | None = None
        self._guards_a_loop = False

    @property
    def report(self) -> GuardReport:
        return self._record.report

    def __enter__(self) -> Guard:
        loops = {"jax", "tensorflow"} & sys.modules.keys()
        if not self._models and not self._others and not loops:
            raise UsageError(_GUARDS_NOTHING)
        for model in self._models:
            model.on()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for model in self._models:
            model.off()
        if not self._models and not self._guards_a_loop:
            # A loop may also be inside `with`, so this is known only at the end.
            say(_GUARDS_NOTHING)

    def backward(
        self,
        loss_fn: Callable[..., Any],
        *batch: Any,
        weight: Callable[..., Any] | None = None,
    ) -> Any:
        """PyTorch: `loss_fn(*batch)` and the backward pass, in place of loss.backward().

        Gradients are added to `.grad`, and the loss is returned, detached. Every tensor of the
        batch is cut along its first axis if memory runs out. Pass a tensor that must not be cut
        inside the function. The loss must be a mean or a sum over the samples; if it is a mean over
        something else, `weight(*part)` returns the weight of a part.
        """
        self._guards_a_loop = True
        if self._torch_loop is None:
            if "torch" not in sys.modules or not self._others:
                raise UsageError(
                    "backward() needs the PyTorch module that you train: whygpu.oom_guard(model)"
                )
            self._torch_loop = TorchLoop(self._training, self._others, check=self._check)
        return self._torch_loop.backward(Work(loss_fn, batch, weight))

    def value_and_grad(
        self,
        loss_fn: Callable[..., Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        *,
        batch_argnums: Sequence[int] | None = None,
        weight: Callable[..., Any] | None = None,
    ) -> Callable[..., Any]:
        """JAX: as jax.value_and_grad(loss_fn), compiled, to be called outside jax.jit.

        All arguments but those of `argnums` are the batch, unless `batch_argnums` names them: their
        arrays are cut along the first axis if memory runs out. Keys made by jax.random.key() are
        not cut; each part gets its own. For what the loss must be, see `backward`.
        """
        if "jax" not in sys.modules:
            raise UsageError("value_and_grad() needs JAX, and the program has not imported it")
        self._guards_a_loop = True
        return JaxLoop(
            self._training,
            loss_fn,
            argnums=argnums,
            has_aux=has_aux,
            batch_argnums=batch_argnums,
            weight=weight,
            check=self._check,
        )

    def gradients(
        self,
        loss_fn: Callable[..., Any],
        variables: Sequence[Any],
        *,
        jit_compile: bool | None = None,
        weight: Callable[..., Any] | None = None,
    ) -> Callable[..., Any]:
        """TensorFlow: a function of the batch that returns `loss_fn(*batch)` and its gradients for
        the variables, as tf.GradientTape computes them, compiled; to be called outside tf.function.

        Every tensor of the batch is cut along its first axis if memory runs out. Variables that
        the loss function itself changes are restored before each attempt. For what the loss must
        be, see `backward`.
        """
        if "tensorflow" not in sys.modules:
            raise UsageError("gradients() needs TensorFlow, and the program has not imported it")
        self._guards_a_loop = True
        return TensorFlowLoop(
            self._training,
            loss_fn,
            variables,
            weight=weight,
            jit_compile=jit_compile,
            check=self._check,
        )


def oom_guard(
    *objects: Any, micro_batch: int | None = None, check: bool = True, exact: bool = False
) -> Guard:
    """Keeps training when memory runs out, with the same mathematics.

    With a Keras 3 model, on any backend:

        with whygpu.oom_guard(model) as guard:
            model.fit(...)

    In a PyTorch loop, with the module (and whatever else is trained):

        guard = whygpu.oom_guard(model)
        loss = guard.backward(loss_fn, x, y)      # in place of loss_fn(x, y).backward()

    In a JAX loop:

        step = whygpu.oom_guard().value_and_grad(loss_fn)
        loss, gradients = step(params, x, y)

    In a TensorFlow loop:

        step = whygpu.oom_guard().gradients(loss_fn, variables)
        loss, gradients = step(x, y)

    A step that runs out of memory is computed again in micro-batches, from the same weights and
    data, and their gradients are added. `micro_batch` starts with that many samples at once;
    `check=False` does not check whether the loss of a batch follows from those of its parts;
    `exact=True` refuses if more than rounding would differ. `guard.report` says what was done.
    """
    refuse_at_once()
    return Guard(objects, micro_batch=micro_batch, check=check, exact=exact)


def OomGuard(*, micro_batch: int | None = None, exact: bool = False) -> Any:  # noqa: N802
    """The guard as a Keras callback: model.fit(..., callbacks=[whygpu.OomGuard()]).

    See whygpu.oom_guard() for what it does; the callback's `report` tells what it did. With
    TensorFlow, make it before the model: TensorFlow then refuses memory at once, not after 10 s.
    """
    keras: Any = sys.modules.get("keras")
    if keras is None or not hasattr(keras, "ops"):
        raise UsageError("OomGuard() is a callback for Keras 3: import keras first")
    refuse_at_once()

    class GuardCallback(keras.callbacks.Callback):  # type: ignore[misc]
        """Guards the model while it is in `fit`."""

        def __init__(self) -> None:
            super().__init__()
            self._guard: Guard | None = None

        @property
        def report(self) -> GuardReport:
            return self._guard.report if self._guard else Record().report

        def on_train_begin(self, logs: Any = None) -> None:
            del logs
            self._guard = Guard(
                [self.model],
                micro_batch=micro_batch,
                check=True,
                exact=exact,
                lasts=partial(in_fit, self),
            )
            self._guard.__enter__()
            self.model.make_train_function()

        def on_train_end(self, logs: Any = None) -> None:
            del logs
            if self._guard is not None:
                self._guard.__exit__(None, None, None)

    return GuardCallback()
