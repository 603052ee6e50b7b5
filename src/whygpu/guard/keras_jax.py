"""Pieces of a training step for Keras on JAX: pure functions, compiled, of the model's state."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from whygpu.guard.keras_engine import Batch, Predictions, call_options, masks_of, with_masks


class State(NamedTuple):
    """The state that Keras passes through a step on JAX, in its order."""

    trainable: list[Any]
    non_trainable: list[Any]
    optimizer: list[Any]
    metrics: list[Any]


class JaxEngine:
    """Weights are donated to JAX only when the optimizer replaces them.

    Keras's own step donates all of its state, so that a failure can destroy the weights. Here, what
    may fail donates nothing that is needed again.
    """

    def __init__(self, keras: Any, model: Any) -> None:
        self.model = model
        self._keras = keras
        self._jax: Any = sys.modules["jax"]
        self._learn = self._compiled(self._learn_pure, donate=(1,))
        self._predict = self._compiled(self._predict_pure, static=(3,))
        self._judge = self._compiled(self._judge_pure)
        self._pull = self._compiled(self._pull_pure, donate=(1,))
        self._assess = self._compiled(self._assess_pure)
        self._track = self._compiled(self._track_pure)
        self._measure = self._compiled(self._measure_pure)
        self._apply = self._compiled(self._apply_pure, donate=(0, 1))
        self._places = {id(v): i for i, v in enumerate(model.non_trainable_variables)}
        self.state = State([], [], [], [])
        self._gradients: Any = None

    def _compiled(
        self, function: Callable[..., Any], donate: Sequence[int] = (), static: Sequence[int] = ()
    ) -> Callable[..., Any]:
        if self.model.run_eagerly or not self.model.jit_compile:
            return function
        compiled: Callable[..., Any] = self._jax.jit(
            function, donate_argnums=donate, static_argnums=static
        )
        return compiled

    # State

    def save(self) -> State:
        return self.state

    def restore(self, saved: State) -> None:
        self.state = saved

    def take(self, given: Sequence[Any]) -> None:
        """Begin with the state that Keras passes in; in evaluation, without the optimizer's."""
        trainable, non_trainable, *optimizer, metrics = given
        self.state = State(trainable, non_trainable, optimizer[0] if optimizer else [], metrics)

    def given(self, lists: int) -> tuple[Any, ...]:
        """What Keras expects back: as many lists as it passed in."""
        state = self.state
        return tuple(state) if lists == len(state) else (*state[:2], state.metrics)

    def hand_back(self) -> None:
        """Put the weights back into the model after a failure: Keras took them out of it."""
        lists = ("trainable_variables", "non_trainable_variables", "optimizer_variables")
        self.model._jax_state = dict(zip((*lists, "metrics_variables"), self.state, strict=True))
        self.model._jax_state_synced = False

    def get(self, variables: Sequence[Any]) -> list[Any]:
        return [self.state.non_trainable[self._places[id(v)]] for v in variables]

    def put(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        changes = {self._places[id(v)]: value for v, value in zip(variables, values, strict=True)}
        self._move(changes, {})

    def metric_values(self) -> list[Any]:
        return self.state.metrics

    def _move(self, non_trainable: dict[int, Any], metrics: dict[int, Any]) -> None:
        self.state = self.state._replace(
            non_trainable=_changed(self.state.non_trainable, non_trainable),
            metrics=_changed(self.state.metrics, metrics),
        )

    # Pieces

    def clear_gradients(self, parts: int) -> None:
        self._gradients = None
        if parts > 1:
            self._gradients = [self._jax.numpy.zeros_like(v) for v in self.state.trainable]

    def learn(self, batch: Batch, share: float) -> tuple[Any, Predictions]:
        loss, predictions, moved, counted, self._gradients = self._wait(
            self._learn(self.state, self._gradients, share, batch)
        )
        self._move(moved, counted)
        return loss, predictions

    def _learn_pure(self, state: State, gradients: Any, share: Any, batch: Batch) -> Any:
        model = self.model

        def loss_of(trainable: list[Any]) -> Any:
            scaled, (loss, values, non_trainable, metrics) = model.compute_loss_and_updates(
                trainable,
                state.non_trainable,
                state.metrics,
                *batch,
                training=True,
                optimizer_variables=state.optimizer,
            )
            moved = _changes(state.non_trainable, non_trainable)
            counted = _changes(state.metrics, metrics)
            masks = masks_of(self._keras, values)
            return scaled * share, (loss, Predictions(values, masks), moved, counted)

        (_, results), added = self._jax.value_and_grad(loss_of, has_aux=True)(state.trainable)
        return (*results, _added(gradients, added))

    def predict(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        predictions, losses, moved = self._wait(
            self._predict(self.state.trainable, self.state.non_trainable, x, training)
        )
        self._move(moved, {})
        return predictions, losses

    def _predict_pure(
        self, trainable: list[Any], non_trainable: list[Any], x: Any, training: bool
    ) -> Any:
        values, after, losses = self.model.stateless_call(
            trainable, non_trainable, x, return_losses=True, **call_options(self.model, training)
        )
        masks = masks_of(self._keras, values)
        return Predictions(values, masks), losses, _changes(non_trainable, after)

    def look(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        return self.predict(x, training)

    def judge(self, batch: Batch, predictions: Predictions) -> tuple[Any, Any]:
        loss, moved, counted, direct, gradient = self._wait(
            self._judge(self.state, batch, predictions)
        )
        self._move(moved, counted)
        self._gradients = direct
        return loss, gradient

    def _judge_pure(self, state: State, batch: Batch, predictions: Predictions) -> Any:
        def loss_of(trainable: list[Any], values: Any) -> Any:
            loss, moved, counted = self._loss(
                state._replace(trainable=trainable),
                batch,
                predictions._replace(values=values),
                True,
            )
            mapping = list(zip(self.model.optimizer.variables, state.optimizer, strict=True))
            with self._keras.StatelessScope(state_mapping=mapping):
                scaled = self.model.optimizer.scale_loss(loss)
            return scaled, (loss, moved, counted)

        gradient_of = self._jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True)
        (_, results), gradients = gradient_of(state.trainable, predictions.values)
        return (*results, *gradients)

    def _loss(
        self, state: State, batch: Batch, predictions: Predictions, training: bool
    ) -> tuple[Any, dict[int, Any], dict[int, Any]]:
        loss, (_, non_trainable, metrics) = self.model.stateless_compute_loss(
            state.trainable,
            state.non_trainable,
            state.metrics,
            x=batch.x,
            y=batch.y,
            y_pred=with_masks(self._keras, predictions),
            sample_weight=batch.weights,
            training=training,
        )
        moved = _changes(state.non_trainable, non_trainable)
        return loss, moved, _changes(state.metrics, metrics)

    def pull(self, x: Any, gradient: Any) -> Predictions:
        values, moved, self._gradients = self._wait(
            self._pull(self.state, self._gradients, x, gradient)
        )
        self._move(moved, {})
        return Predictions(values, [])

    def _pull_pure(self, state: State, gradients: Any, x: Any, gradient: Any) -> Any:
        def values_of(trainable: list[Any]) -> Any:
            options = call_options(self.model, True)
            values, after = self.model.stateless_call(trainable, state.non_trainable, x, **options)
            return values, _changes(state.non_trainable, after)

        values, back, moved = self._jax.vjp(values_of, state.trainable, has_aux=True)
        return values, moved, _added(gradients, back(gradient)[0])

    def assess(self, batch: Batch, predictions: Predictions) -> Any:
        loss, moved, counted = self._wait(self._assess(self.state, batch, predictions))
        self._move(moved, counted)
        return loss

    def _assess_pure(self, state: State, batch: Batch, predictions: Predictions) -> Any:
        return self._loss(state, batch, predictions, False)

    def track(self, loss: Any, samples: int) -> None:
        self._move({}, self._track(self.state.metrics, loss, samples))

    def _track_pure(self, metrics: list[Any], loss: Any, samples: Any) -> Any:
        tracker = self.model._loss_tracker
        return self._with_metrics(
            metrics, lambda: tracker.update_state(loss, sample_weight=samples)
        )[1]

    def measure(self, batch: Batch, predictions: Predictions) -> Any:
        logs, counted = self._wait(self._measure(self.state.metrics, batch, predictions.values))
        self._move({}, counted)
        return logs

    def _measure_pure(self, metrics: list[Any], batch: Batch, values: Any) -> Any:
        # Without masks: Keras's own step on JAX loses them on the way to the metrics.
        update = functools.partial(self.model.compute_metrics, batch.x, batch.y, values)
        return self._with_metrics(metrics, lambda: update(batch.weights))

    def results(self) -> Any:
        return self._with_metrics(self.state.metrics, self.model.get_metrics_result)[0]

    def _with_metrics(self, metrics: list[Any], work: Callable[[], Any]) -> tuple[Any, Any]:
        variables = self.model.metrics_variables
        mapping = list(zip(variables, metrics, strict=True))
        with self._keras.StatelessScope(state_mapping=mapping) as scope:
            result = work()
        after = [scope.get_current_value(variable) for variable in variables]
        return result, _changes(metrics, after)

    def apply(self) -> None:
        trainable, optimizer = self._apply(
            self.state.trainable, self.state.optimizer, self._gradients
        )
        self.state = self.state._replace(trainable=trainable, optimizer=optimizer)
        self._gradients = None

    def _apply_pure(self, trainable: list[Any], optimizer: list[Any], gradients: Any) -> Any:
        return self.model.optimizer.stateless_apply(optimizer, gradients, trainable)

    def batch_dependent(self) -> list[str]:
        return []

    def drew_otherwise(self, saved: State) -> bool:
        return False

    def rows(self, leaf: Any, start: int, stop: int) -> Any:
        if not isinstance(leaf, self._jax.Array):
            return leaf[start:stop]
        # Compiled once for each size, where leaf[start:stop] is once for each start as well.
        return self._jax.lax.dynamic_slice_in_dim(leaf, start, stop - start)

    def _wait(self, result: Any) -> Any:
        # JAX computes asynchronously; an error must be raised here.
        return self._jax.block_until_ready(result)


def _changes(before: Sequence[Any], after: Sequence[Any]) -> dict[int, Any]:
    """What is new, by its place: frozen weights would be copied if they were returned."""
    return {
        index: new
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if new is not None and new is not old
    }


def _changed(values: list[Any], changes: dict[int, Any]) -> list[Any]:
    return [changes.get(index, value) for index, value in enumerate(values)] if changes else values


def _added(gradients: Any, added: Any) -> Any:
    if gradients is None:
        return added
    return [total + new for total, new in zip(gradients, added, strict=True)]
