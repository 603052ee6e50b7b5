"""Estimates the GPU memory of a Keras model on PyTorch, by running Keras's own steps."""

import numpy
import torch

from ...work_keras import all_layers
from ..keras_model import prepared
from .estimator import Estimator
from .meta import on_meta, without_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class KerasEstimator(Estimator):
    truth = True
    """Conditions are True here: Keras asks whether gradients are finite and an update is due."""

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
        super(KerasEstimator, self).__init__(train, gpu, tell)
        self.model = model
        self._inputs, self._targets = prepared(model, train, optimizer, mixed, shapes)
        self._updates_watched = False
        self.recorder.mark(_weights_on_meta(model), "weights")

    def step(self, batch: int) -> None:
        import keras

        # Keras keeps the batch in main memory and moves it when the model is called.
        with keras.device("cuda:0"):
            inputs = _rows(self._inputs, batch)
            if not self.train:
                self.model.eval()
                with torch.no_grad():
                    self.model.predict_step((inputs,))
                return
            self.model.train()
            self._watch_updates()
            self.model.train_step((inputs, _rows(self._targets, batch)))
            gradients = [each.value.grad for each in self.model.trainable_variables]
            self.recorder.mark([each for each in gradients if each is not None], "gradients")
            self.recorder.mark(_on_gpu(self.model.optimizer.variables), "optimizer")

    def _watch_updates(self) -> None:
        """Distinguish the work of the optimizer from that of the model."""
        if self._updates_watched:
            return
        self._updates_watched = True
        apply = self.model.optimizer.apply

        def watched(*arguments: "Any", **options: "dict[str, Any]") -> "Any":
            before, self.recorder.phase = self.recorder.phase, "update"
            try:
                return apply(*arguments, **options)
            finally:
                self.recorder.phase = before

        self.model.optimizer.apply = watched


def _weights_on_meta(model: "Any") -> "list[Any]":
    known: "dict[int, Any]" = {}
    for layer in [model, *all_layers(model)]:
        # Reading the attribute creates it, and PyTorch finds the weights through it.
        getattr(layer, "torch_params", None)
    weights = on_meta(model, known)
    variables = [*model.variables, *_more_variables(model)]
    for variable in variables:
        variable._value = without_data(variable._value, known)
    return [*weights, *(variable._value for variable in variables)]


def _more_variables(model: "Any") -> "list[Any]":
    """The variables of the optimizer and of the metrics, if they exist already."""
    more = list(getattr(model, "metrics_variables", None) or ())
    optimizer = getattr(model, "optimizer", None)
    return more + list(optimizer.variables if optimizer is not None else ())


def _on_gpu(variables: "Any") -> "list[Any]":
    return [each.value for each in variables if each.value.is_cuda]


def _rows(tree: "Any", count: int) -> "Any":
    """Arrays of the same kind with `count` rows: they are never read and take no memory."""
    if isinstance(tree, dict):
        return {key: _rows(each, count) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([_rows(each, count) for each in tree])
    like = torch.as_tensor(numpy.asarray(tree))
    return like[:1].expand((count,) + tuple(like.shape[1:]))
