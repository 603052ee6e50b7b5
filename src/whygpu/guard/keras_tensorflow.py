"""Pieces of a training step for Keras on TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from whygpu.guard.keras_eager import VariableState
from whygpu.guard.keras_engine import Batch, Predictions, call_options, masks_of, with_masks
from whygpu.guard.tensorflow_gradients import added


class TensorFlowEngine(VariableState):
    """Each piece is a separate graph.

    Keras's step is one graph, in which a weight may be updated as soon as its gradient is there,
    while another gradient still runs out of memory. In separate graphs that cannot happen.
    """

    def __init__(self, keras: Any, model: Any) -> None:
        super().__init__(model)
        self._keras = keras
        self._tf: Any = sys.modules["tensorflow"]
        self._learn = self._compiled(self._learn_graph)
        self._predict = {flag: self._compiled(self._predict_graph(flag)) for flag in (True, False)}
        self._judge = self._compiled(self._judge_graph)
        self._pull = self._compiled(self._pull_graph)
        self._assess = self._compiled(self._assess_graph)
        self._measure = self._compiled(self._measure_graph)
        self._apply = self._compiled(self._apply_graph)
        self._gradients: list[Any] = []
        self._of_outputs: dict[int, Any] = {}
        self.counts_rows = True
        """Whether Keras knows the size of a batch when it builds the graph of its own step."""

    def _compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function = self._tf.autograph.experimental.do_not_convert(function)
        if self.model.run_eagerly:
            return function
        compiled: Callable[..., Any] = self._tf.function(
            function, reduce_retracing=True, jit_compile=self.model.jit_compile
        )
        return compiled

    def _copy(self, variable: Any) -> Any:
        return self._tf.identity(variable.value)

    def clear_gradients(self, parts: int) -> None:
        del parts
        self._gradients = []
        self._of_outputs = {}

    def learn(self, batch: Batch, share: float) -> tuple[Any, Predictions]:
        loss, predictions, gradient = self._outputs_apart(
            share, lambda: self._learn(batch, self._number(share))
        )
        self._add(gradient)
        return loss, predictions

    def _learn_graph(self, batch: Batch, share: Any) -> Any:
        with self._tf.GradientTape() as tape:
            values = self._call(batch.x, True)
            loss = self._loss(batch, values, True)
            scaled = self._scaled(loss)
            scaled = scaled * self._tf.cast(share, scaled.dtype)
        return loss, self._predictions(values), tape.gradient(scaled, self._weights())

    def predict(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        predictions, losses = self._predict[training](x)
        return predictions, list(losses)

    def _predict_graph(self, training: bool) -> Callable[[Any], Any]:
        def graph(x: Any) -> Any:
            values = self._call(x, training)
            return self._predictions(values), list(self.model.losses)

        return graph

    def look(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        # It runs once and on few samples: compiling a graph would take longer.
        predictions, losses = self._predict_graph(training)(x)
        return predictions, losses

    def judge(self, batch: Batch, predictions: Predictions) -> tuple[Any, Any]:
        loss, direct, gradient = self._outputs_apart(1.0, lambda: self._judge(batch, predictions))
        self._add(direct)
        return loss, gradient

    def _judge_graph(self, batch: Batch, predictions: Predictions) -> Any:
        # Losses that layers added belong to a forward pass, and there was none in this graph.
        self.model._clear_losses()
        values = with_masks(self._keras, predictions)
        flat = self._keras.tree.flatten(values)
        weights = self._weights()
        with self._tf.GradientTape() as tape:
            tape.watch(flat)
            loss = self._loss(batch, values, True)
            scaled = self._scaled(loss)
        found = tape.gradient(scaled, [*weights, *flat])
        for_values = [
            self._tf.zeros_like(value) if given is None else given
            for value, given in zip(flat, found[len(weights) :], strict=True)
        ]
        gradient = self._keras.tree.pack_sequence_as(values, for_values)
        return loss, found[: len(weights)], gradient

    def pull(self, x: Any, gradient: Any) -> Predictions:
        predictions, found = self._pull(x, gradient)
        self._add(found)
        result: Predictions = predictions
        return result

    def _pull_graph(self, x: Any, gradient: Any) -> Any:
        with self._tf.GradientTape() as tape:
            values = self._call(x, True)
        flatten = self._keras.tree.flatten
        found = tape.gradient(flatten(values), self._weights(), output_gradients=flatten(gradient))
        return self._predictions(values), found

    def assess(self, batch: Batch, predictions: Predictions) -> Any:
        self._of_outputs = {}
        return self._outputs_apart(1.0, lambda: self._assess(batch, predictions))

    def _assess_graph(self, batch: Batch, predictions: Predictions) -> Any:
        self.model._clear_losses()
        return self._loss(batch, with_masks(self._keras, predictions), False)

    def track(self, loss: Any, samples: int) -> None:
        self.model._loss_tracker.update_state(loss, sample_weight=samples)
        for index, mean in enumerate(self._output_means()):
            mean.update_state(self._of_outputs[index], samples if self.counts_rows else None)

    def _outputs_apart(self, share: float, work: Callable[[], Any]) -> Any:
        """Record what a graph adds to the losses of several outputs, to add it as Keras does.

        Keras does it differently if the graph knows the number of samples. That of a part may not.
        """
        means = self._output_means()
        before = [self.get(mean.variables) for mean in means]
        result = work()
        for index, (mean, old) in enumerate(zip(means, before, strict=True)):
            total, count = (a - b for a, b in zip(self.get(mean.variables), old, strict=True))
            self.put(mean.variables, old)
            self._of_outputs[index] = self._of_outputs.get(index, 0.0) + total / count * share
        return result

    def _output_means(self) -> list[Any]:
        compiled = self.model._compile_loss
        return list(compiled.metrics) if compiled is not None else []

    def measure(self, batch: Batch, predictions: Predictions) -> Any:
        return self._measure(batch, predictions)

    def _measure_graph(self, batch: Batch, predictions: Predictions) -> Any:
        values = with_masks(self._keras, predictions)
        return self.model.compute_metrics(batch.x, batch.y, values, batch.weights)

    def results(self) -> Any:
        return self.model.get_metrics_result()

    def apply(self) -> None:
        gradients, self._gradients = self._gradients, []
        self._apply(gradients)

    def _apply_graph(self, gradients: list[Any]) -> None:
        weights = self.model.trainable_weights
        self.model.optimizer.apply_gradients(zip(gradients, weights, strict=True))

    def batch_dependent(self) -> list[str]:
        return []

    def drew_otherwise(self, saved: Any) -> bool:
        return False

    def rows(self, leaf: Any, start: int, stop: int) -> Any:
        return leaf[start:stop]

    def _weights(self) -> list[Any]:
        return [weight.value for weight in self.model.trainable_weights]

    def _call(self, x: Any, training: bool) -> Any:
        return self.model(x, **call_options(self.model, training))

    def _predictions(self, values: Any) -> Predictions:
        return Predictions(values, masks_of(self._keras, values))

    def _number(self, value: float) -> Any:
        # A Python number would be part of the graph: each new value would create another graph.
        return self._tf.constant(value, dtype="float64")

    def _add(self, new: list[Any]) -> None:
        if not self._gradients:
            self._gradients = list(new)
            return
        for index, each in enumerate(new):
            # One after the other, so that two full sets never exist at the same time.
            self._gradients[index] = added(self._tf, self._gradients[index], each)
