"""Checks, on a few samples of the batch that did not fit, what may be computed in parts.

Nothing here changes a model: the caller saves the state before and restores it afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from whygpu.guard.batches import bounds
from whygpu.guard.keras_engine import Batch, Engine, Predictions, is_keras_own
from whygpu.guard.splitting import CannotSplit, balanced
from whygpu.readers.memory_errors import shortage_in

_SAMPLES = 8
_GROUP = 2
"""Samples are computed all together and in groups: a single group might agree by chance."""
_MEANS = ("sum_over_batch_size", "mean")


class Plan(NamedTuple):
    """How a batch of this model is computed in parts."""

    loss_apart: bool
    """Each sample has its own loss, and the loss of the batch is their mean."""
    metrics_apart: bool
    """Metrics can be updated part by part."""


class _Piece(NamedTuple):
    batch: Batch
    predictions: Predictions
    losses: list[Any]
    samples: int


class _Look(NamedTuple):
    """Some samples together, and the same samples in groups."""

    whole: _Piece
    groups: list[_Piece]


def examine(keras: Any, engine: Engine, batch: Batch, differs: Callable[[str], None]) -> Plan:
    """The plan for this model; CannotSplit if no plan gives the result of the whole batch."""
    _refuse_written_over(engine.model)
    try:
        return _examined(keras, engine, batch, differs)
    except CannotSplit:
        raise
    except Exception as error:
        if shortage_in(error) is not None:
            raise
        raise CannotSplit(f"the model fails on a batch of only a few samples: {error}") from error


def _examined(keras: Any, engine: Engine, batch: Batch, differs: Callable[[str], None]) -> Plan:
    look = _looked(keras, engine, batch, training=False)
    if not _predictions_apart(keras, engine, batch, look):
        differs(
            "the model's prediction for a sample depends on the other samples of its batch, so the "
            "gradients are not those of the whole batch"
        )
    plan = Plan(_loss_apart(keras, engine.model, look), _metrics_apart(keras, engine, look))
    _refuse_added_losses(keras, engine, look, plan)
    return plan


def _looked(keras: Any, engine: Engine, batch: Batch, *, training: bool) -> _Look:
    leaf = next(leaf for leaf in keras.tree.flatten(batch.x) if leaf is not None)
    samples = min(_SAMPLES, int(leaf.shape[0]))
    groups = bounds(balanced(samples, max(2, samples // _GROUP)))

    def piece(start: int, stop: int) -> _Piece:
        def cut(leaf: Any) -> Any:
            return leaf if leaf is None else engine.rows(leaf, start, stop)

        rows = Batch(*(keras.tree.map_structure(cut, part) for part in batch))
        predictions, losses = engine.look(rows.x, training)
        return _Piece(rows, predictions, losses, stop - start)

    return _Look(piece(0, samples), [piece(start, stop) for start, stop in groups])


# Predictions


def _predictions_apart(keras: Any, engine: Engine, batch: Batch, look: _Look) -> bool:
    if not _same_predictions(keras, look):
        return False
    norm = keras.layers.BatchNormalization
    known = any(isinstance(layer, norm) for layer in engine.model._flatten_layers())
    if known or seed_states(engine.model):
        # In training such a model is known to differ, and its layers are reported.
        return True
    return _same_predictions(keras, _looked(keras, engine, batch, training=True))


def _same_predictions(keras: Any, look: _Look) -> bool:
    whole = keras.tree.flatten(look.whole.predictions.values)
    groups = [keras.tree.flatten(group.predictions.values) for group in look.groups]
    pieces = zip(whole, zip(*groups, strict=True), strict=True)
    return all(_same_rows(keras, together, apart) for together, apart in pieces)


def _same_rows(keras: Any, together: Any, apart: Sequence[Any]) -> bool:
    return close(keras, together, keras.ops.concatenate(list(apart), axis=0))


def same(keras: Any, a: Any, b: Any) -> bool:
    return bool(keras.ops.all(keras.ops.equal(a, b)))


def close(keras: Any, a: Any, b: Any) -> bool:
    """Equal to half of the digits that their type has."""
    if tuple(a.shape) != tuple(b.shape):
        return False
    ops = keras.ops
    dtype = keras.backend.standardize_dtype(a.dtype)
    if "float" not in dtype:
        return same(keras, a, b)
    if not math.prod(a.shape):
        return True
    a, b = ops.cast(a, "float32"), ops.cast(b, "float32")
    gap = float(ops.max(ops.abs(a - b)))
    return gap <= math.sqrt(_epsilon(dtype)) * float(ops.max(ops.abs(a)))


def _epsilon(dtype: str) -> float:
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 2.0**-23)


# The loss


def _loss_apart(keras: Any, model: Any, look: _Look) -> bool:
    """Whether every loss is a mean of values that each sample has by itself."""
    if not is_keras_own(model, "compute_loss"):
        return False
    compiled = model._compile_loss
    if compiled is None:
        return True
    if any(mask is not None for mask in look.whole.predictions.masks):
        # A mean over unmasked values weighs each part by how many of them it has.
        return False
    return all(
        _mean_of_samples(keras, loss, path, look) for path, loss, *_ in compiled._flat_losses
    )


def _mean_of_samples(keras: Any, loss: Any, path: Any, look: _Look) -> bool:
    if type(loss).__call__ is not keras.losses.Loss.__call__:
        return False
    weighed = look.whole.batch.weights is not None
    by_weight = loss.reduction == "mean_with_sample_weight"
    if loss.reduction not in _MEANS and not (by_weight and not weighed):
        return False
    try:
        together, *apart = [_values(keras, loss, path, p) for p in (look.whole, *look.groups)]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        # Keras matches targets and outputs of different structures; that is not repeated here.
        return False
    if len(together.shape) == 0 or together.shape[0] != look.whole.samples:
        # One number for all samples: its divisor may differ from batch to batch.
        return False
    return _same_rows(keras, together, apart)


def _values(keras: Any, loss: Any, path: Any, piece: _Piece) -> Any:
    y_true, y_pred = piece.batch.y, piece.predictions.values
    for key in path:
        y_true, y_pred = y_true[key], y_pred[key]
    convert = keras.ops.convert_to_tensor
    return loss.call(convert(y_true, dtype=loss.dtype), convert(y_pred, dtype=loss.dtype))


# Losses that layers add


def _refuse_added_losses(keras: Any, engine: Engine, look: _Look, plan: Plan) -> None:
    """Refuse losses made in a forward pass, unless they are means over the samples."""
    of_weights = sum(1 for weight in engine.model.trainable_weights if weight.regularizer)
    in_training = engine.look(look.whole.batch.x, True)[1]
    if len(in_training) <= of_weights and len(look.whole.losses) <= of_weights:
        return
    if not plan.loss_apart:
        raise CannotSplit(
            "layers add their own losses (add_loss, activity regularisers), and the model's loss "
            "is not a plain mean over samples"
        )
    if len(in_training) != len(look.whole.losses):
        raise CannotSplit(
            "layers add losses only in training, and there whygpu cannot check whether they are "
            "means over the samples"
        )
    for index, together in enumerate(look.whole.losses):
        parts = [keras.ops.sum(group.losses[index]) * group.samples for group in look.groups]
        if not close(keras, keras.ops.sum(together), sum(parts) / look.whole.samples):
            raise CannotSplit(
                "a layer adds a loss (add_loss, or an activity regulariser) that is not a mean "
                "over the samples of its batch"
            )


# Metrics


def _metrics_apart(keras: Any, engine: Engine, look: _Look) -> bool:
    model = engine.model
    if not is_keras_own(model, "compute_metrics"):
        return False
    if model._compile_metrics is None:
        return True
    saved = engine.save()
    engine.measure(look.whole.batch, look.whole.predictions)
    together = engine.metric_values()
    engine.restore(saved)
    for group in look.groups:
        engine.measure(group.batch, group.predictions)
    apart = engine.metric_values()
    engine.restore(saved)
    return all(close(keras, a, b) for a, b in zip(together, apart, strict=True))


# Models


def seed_states(model: Any) -> list[Any]:
    layers = model._flatten_layers()
    return [generator.state for layer in layers for generator in layer._seed_generators]


def _refuse_written_over(model: Any) -> None:
    if any(getattr(v, "overwrite_with_gradient", False) for v in model.trainable_variables):
        raise CannotSplit(
            "float8 training computes scales instead of gradients, and scales cannot be summed"
        )
