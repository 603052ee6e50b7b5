"""Pieces of a training step for Keras on PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from whygpu.guard.keras_eager import VariableState
from whygpu.guard.keras_engine import Batch, Predictions, call_options, masks_of, with_masks
from whygpu.guard.torch_state import ModuleState, RandomState, batch_norms


class TorchEngine(VariableState):
    """Everything runs eagerly; gradients add up in the weights' own `.grad`."""

    def __init__(self, keras: Any, model: Any) -> None:
        super().__init__(model)
        self._keras = keras
        self._torch: Any = sys.modules["torch"]
        self._forward = self._torch.compile(self._call) if model.jit_compile else self._call

    def _copy(self, variable: Any) -> Any:
        return variable.value.detach().clone()

    def _call(self, x: Any, training: bool) -> Any:
        return self.model(x, **call_options(self.model, training))

    def save(self) -> Any:
        # Layers that wrap a module of PyTorch have buffers and random numbers outside of Keras.
        torch = self._torch
        return super().save(), ModuleState(torch, [self.model]), RandomState(torch)

    def restore(self, saved: Any) -> None:
        variables, modules, random = saved
        super().restore(variables)
        modules.restore()
        random.restore()

    def batch_dependent(self) -> list[str]:
        return batch_norms(self._torch, [self.model])

    def drew_otherwise(self, saved: Any) -> bool:
        moved: bool = saved[2].has_moved()
        return moved

    def clear_gradients(self, parts: int) -> None:
        del parts
        self.model.zero_grad()

    def learn(self, batch: Batch, share: float) -> tuple[Any, Predictions]:
        values = self._forward(batch.x, True)
        loss = self._loss(batch, values, True)
        scaled = self._scaled(loss)
        (scaled * share if share != 1.0 else scaled).backward()
        return loss.detach(), self._detached(values)

    def predict(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        with self._torch.no_grad():
            values = self._forward(x, training)
            return self._detached(values), list(self.model.losses)

    def look(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        return self.predict(x, training)

    def judge(self, batch: Batch, predictions: Predictions) -> tuple[Any, Any]:
        def leaf(tensor: Any) -> Any:
            return tensor.detach().requires_grad_()

        values = self._keras.tree.map_structure(leaf, predictions.values)
        # Losses that layers added belong to a forward pass, and there was none with gradients.
        self.model._clear_losses()
        loss = self._loss(batch, with_masks(self._keras, predictions._replace(values=values)), True)
        self._scaled(loss).backward()
        return loss.detach(), self._keras.tree.map_structure(self._gradient_of, values)

    def pull(self, x: Any, gradient: Any) -> Predictions:
        values = self._forward(x, True)
        flat = self._keras.tree.flatten(values)
        pairs = [
            (value, given)
            for value, given in zip(flat, self._keras.tree.flatten(gradient), strict=True)
            if value.requires_grad
        ]
        self._torch.autograd.backward([v for v, _ in pairs], [g for _, g in pairs])
        return self._detached(values)

    def assess(self, batch: Batch, predictions: Predictions) -> Any:
        with self._torch.no_grad():
            self.model._clear_losses()
            return self._loss(batch, with_masks(self._keras, predictions), False)

    def track(self, loss: Any, samples: int) -> None:
        self.model._loss_tracker.update_state(loss, sample_weight=samples)

    def measure(self, batch: Batch, predictions: Predictions) -> Any:
        values = with_masks(self._keras, predictions)
        with self._torch.no_grad():
            return self.model.compute_metrics(batch.x, batch.y, values, batch.weights)

    def results(self) -> Any:
        return self.model.get_metrics_result()

    def apply(self) -> None:
        weights = self.model.trainable_weights[:]
        with self._torch.no_grad():
            self.model.optimizer.apply([weight.value.grad for weight in weights], weights)

    def rows(self, leaf: Any, start: int, stop: int) -> Any:
        return leaf[start:stop]

    def _detached(self, values: Any) -> Predictions:
        masks = masks_of(self._keras, values)
        return Predictions(self._keras.tree.map_structure(lambda t: t.detach(), values), masks)

    def _gradient_of(self, tensor: Any) -> Any:
        return self._torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
