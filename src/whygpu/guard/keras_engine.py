"""The pieces of a training step of a Keras model, for each backend.

Keras's own `train_step` computes gradients, applies them and updates metrics in one call. Here
these are separate: everything that can run out of memory because of the batch comes before anything
that changes a weight, so that a failed attempt can be discarded.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol


class Batch(NamedTuple):
    """What a step is computed from, as Keras's data adapters give it."""

    x: Any
    y: Any
    weights: Any


class Predictions(NamedTuple):
    """The outputs of a model. Keras attaches a mask to its tensor, and most operations lose it."""

    values: Any
    masks: list[Any]
    """One for each leaf of the values, None if there is none."""


class Engine(Protocol):
    """A compiled Keras model on its backend. It accumulates gradients until they are applied."""

    model: Any

    def save(self) -> Any:
        """The state that a forward pass or a metric changes: not the weights."""

    def restore(self, saved: Any) -> None: ...

    def get(self, variables: Sequence[Any]) -> list[Any]:
        """Copies of the values of some non-trainable variables."""

    def put(self, variables: Sequence[Any], values: Sequence[Any]) -> None: ...

    def metric_values(self) -> list[Any]: ...

    def clear_gradients(self, parts: int) -> None:
        """Begin a step that accumulates the gradients of this many parts."""

    def learn(self, batch: Batch, share: float) -> tuple[Any, Predictions]:
        """The loss, and its gradient times the share added."""

    def predict(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        """Predictions without gradients, and the losses that layers and regularisers added."""

    def look(self, x: Any, training: bool) -> tuple[Predictions, list[Any]]:
        """The same for a few samples."""

    def judge(self, batch: Batch, predictions: Predictions) -> tuple[Any, Any]:
        """The loss of these predictions and its gradient for them; the one for weights is added."""

    def pull(self, x: Any, gradient: Any) -> Predictions:
        """Add the weights' gradient for a gradient of the predictions, which are returned."""

    def assess(self, batch: Batch, predictions: Predictions) -> Any:
        """The loss of given predictions outside training."""

    def track(self, loss: Any, samples: int) -> None:
        """Include the loss in the mean that Keras logs."""

    def measure(self, batch: Batch, predictions: Predictions) -> Any:
        """Update the metrics, and give the logs."""

    def results(self) -> Any:
        """The logs, with nothing updated."""

    def batch_dependent(self) -> list[str]:
        """Names of layers, besides Keras's own, that use the statistics of their batch."""

    def drew_otherwise(self, saved: Any) -> bool:
        """Whether random numbers were drawn since then without a seed of Keras."""

    def rows(self, leaf: Any, start: int, stop: int) -> Any: ...

    def apply(self) -> None:
        """Apply the accumulated gradients with the optimizer."""


def masks_of(keras: Any, values: Any) -> list[Any]:
    masking = import_module("keras.src.backend.common.masking")
    return [masking.get_keras_mask(leaf) for leaf in keras.tree.flatten(values)]


def with_masks(keras: Any, predictions: Predictions) -> Any:
    """The values, each carrying its mask in the way of Keras."""
    masking = import_module("keras.src.backend.common.masking")
    for leaf, mask in zip(keras.tree.flatten(predictions.values), predictions.masks, strict=True):
        if mask is not None:
            masking.set_keras_mask(leaf, mask)
    return predictions.values


def call_options(model: Any, training: bool) -> dict[str, bool]:
    """As Keras's own steps do it: `training` goes only to models that ask for it."""
    return {"training": training} if model._call_has_training_arg else {}


def distinct(variables: Sequence[Any]) -> list[Any]:
    return list({id(variable): variable for variable in variables}.values())


def is_keras_own(model: Any, method: str) -> bool:
    """Whether a method is as Keras wrote it."""
    for kind in type(model).__mro__:
        if method in vars(kind):
            return kind.__module__.startswith("keras.src.")
    return True
