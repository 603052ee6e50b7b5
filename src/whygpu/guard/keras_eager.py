"""What Keras on TensorFlow and on PyTorch have in common: variables, and a loss that uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whygpu.guard.keras_engine import Batch, distinct


class VariableState:
    """The variables that a forward pass or a metric changes, read and written by value, and the
    loss as the model's variables are now."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def _copy(self, variable: Any) -> Any:
        raise NotImplementedError

    def save(self) -> list[tuple[Any, Any]]:
        variables = distinct([*self._moving(), *self.model.metrics_variables])
        return [(variable, self._copy(variable)) for variable in variables]

    def restore(self, saved: list[tuple[Any, Any]]) -> None:
        for variable, value in saved:
            variable.assign(value)

    def get(self, variables: Sequence[Any]) -> list[Any]:
        return [self._copy(variable) for variable in variables]

    def put(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def metric_values(self) -> list[Any]:
        return self.get(self.model.metrics_variables)

    def _loss(self, batch: Batch, values: Any, training: bool) -> Any:
        return self.model._compute_loss(
            x=batch.x,
            y=batch.y,
            y_pred=values,
            sample_weight=batch.weights,
            training=training,
        )

    def _scaled(self, loss: Any) -> Any:
        return self.model.optimizer.scale_loss(loss)

    def _moving(self) -> list[Any]:
        """Non-trainable variables, without the weights of layers that are frozen.

        They are not changed by a step, and copying a frozen network would take its size again.
        """
        frozen = {
            id(variable)
            for layer in self.model._flatten_layers()
            if not layer.trainable
            for variable in layer._trainable_variables
        }
        return [v for v in self.model.non_trainable_variables if id(v) not in frozen]
