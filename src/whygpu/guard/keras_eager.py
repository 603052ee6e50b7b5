"""What Keras on TensorFlow and on PyTorch have in common: state that lives in variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whygpu.guard.keras_engine import distinct


class VariableState:
    """The variables that a forward pass or a metric changes, read and written by value."""

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

    def _moving(self) -> list[Any]:
        """Non-trainable variables, without the weights of layers that are frozen.

        Those are not touched by a step, and copying a frozen network would take its size again.
        """
        frozen = {
            id(variable)
            for layer in self.model._flatten_layers()
            if not layer.trainable
            for variable in layer._trainable_variables
        }
        return [v for v in self.model.non_trainable_variables if id(v) not in frozen]
