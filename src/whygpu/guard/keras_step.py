"""A step of a Keras model over a batch in parts, from an engine's pieces.

Where the loss of a batch is the mean of its samples' losses, the gradient of each part takes
one pass, and is weighted by the part's share of the samples. Any other loss is exact as well, but
needs a second forward pass: the predictions of the parts are joined, the loss of the whole batch is
computed from them, and its gradient is propagated back through each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from whygpu.guard.batches import bounds, samples_in
from whygpu.guard.difference_messages import RANDOM_NUMBERS, batch_norm_words, changed_words
from whygpu.guard.freeing import add_note
from whygpu.guard.keras_checks import Plan, close, examine, same, seed_states
from whygpu.guard.keras_engine import Batch, Engine, Predictions
from whygpu.guard.splitting import CannotSplit, Sizes, Splitter
from whygpu.readers.memory_errors import shortage_in


class Part(NamedTuple):
    """Some rows of a batch. They are cut out when they are needed, for they may be copies."""

    start: int
    stop: int
    share: float
    """Of the samples."""


class KerasStep:
    """Training and evaluation steps of one compiled model."""

    def __init__(
        self, keras: Any, engine: Engine, training: Splitter, evaluation: Splitter
    ) -> None:
        self.engine = engine
        self._keras = keras
        self._training = training
        self._evaluation = evaluation
        self._plan: Plan | None = None
        self._has_reported = False
        self._norms = _batch_norms(keras, engine.model)

    def train(self, data: Any) -> Any:
        """The logs of one training step, with the weights updated."""
        batch = self._unpacked(data)
        saved = self.engine.save()

        def attempt(sizes: Sizes) -> Any:
            try:
                return self._learn_all(batch, sizes)
            except BaseException:
                self.engine.clear_gradients(1)
                self.engine.restore(saved)
                raise

        logs = self._training.run(self._samples(batch), attempt)
        try:
            self.engine.apply()
        except Exception as error:
            if shortage_in(error) is not None:
                add_note(
                    error,
                    "the optimizer's own step ran out of memory. It does not depend on the batch, "
                    "and some weights may have been updated already",
                )
            raise
        return logs

    def evaluate(self, data: Any) -> Any:
        """The logs of one evaluation step."""
        batch = self._unpacked(data)
        saved = self.engine.save()

        def attempt(sizes: Sizes) -> Any:
            try:
                return self._assess_all(batch, sizes)
            except BaseException:
                self.engine.restore(saved)
                raise

        return self._evaluation.run(self._samples(batch), attempt)

    # Training

    def _learn_all(self, batch: Batch, sizes: Sizes) -> Any:
        engine = self.engine
        engine.clear_gradients(len(sizes))
        if len(sizes) == 1:
            loss, predictions = engine.learn(batch, 1.0)
            engine.track(loss, sizes[0])
            return engine.measure(batch, predictions)
        plan = self._planned(batch)
        before = None if self._has_reported else (engine.save(), self._moving())
        parts = _parts(sizes)
        learn = self._in_one_pass if plan.loss_apart else self._in_two_passes
        loss, all_predictions = learn(batch, parts, plan)
        engine.track(loss, sum(sizes))
        if before is not None:
            self._report_what_moved(*before)
        if all_predictions is None:
            return engine.results()
        return engine.measure(batch, all_predictions)

    def _in_one_pass(
        self, batch: Batch, parts: Sequence[Part], plan: Plan
    ) -> tuple[Any, Predictions | None]:
        losses, kept = [], []
        statistics = _Averages(self._keras, self.engine, self._norms)
        for part in parts:
            rows = self._cut(batch, part)
            loss, predictions = self.engine.learn(rows, part.share)
            losses.append(loss * part.share)
            if plan.metrics_apart:
                self.engine.measure(rows, predictions)
            else:
                kept.append(predictions)
            statistics.end_of_part(part.share)
        statistics.end_of_parts()
        return sum(losses), self._joined(kept, parts) if kept else None

    def _in_two_passes(
        self, batch: Batch, parts: Sequence[Part], plan: Plan
    ) -> tuple[Any, Predictions | None]:
        del plan
        predictions = self._predicted(batch, parts, training=True)
        self._refuse_whole_numbers(predictions)
        loss, gradient = self.engine.judge(batch, predictions)
        statistics = _Averages(self._keras, self.engine, self._norms)
        flat = self._keras.tree.flatten
        for part in parts:
            x = self._rows(batch.x, part.start, part.stop)
            again = self.engine.pull(x, self._rows(gradient, part.start, part.stop))
            first = self._rows(predictions.values, part.start, part.stop)
            for a, b in zip(flat(first), flat(again.values), strict=True):
                if not close(self._keras, a, b):
                    raise CannotSplit(_NOT_REPEATABLE)
            statistics.end_of_part(part.share)
        statistics.end_of_parts()
        return loss, predictions

    def _predicted(self, batch: Batch, parts: Sequence[Part], *, training: bool) -> Predictions:
        """All predictions. Afterwards, the model is in the same state as before."""
        saved = self.engine.save()
        statistics = _Averages(self._keras, self.engine, self._norms)
        predictions = []
        for part in parts:
            x = self._rows(batch.x, part.start, part.stop)
            predictions.append(self.engine.predict(x, training)[0])
            statistics.end_of_part(part.share)
        self.engine.restore(saved)
        return self._joined(predictions, parts)

    def _planned(self, batch: Batch) -> Plan:
        if self._plan is None:
            engine = self.engine
            saved = engine.save()
            try:
                self._plan = examine(self._keras, engine, batch, self._training.differs)
            finally:
                engine.restore(saved)
            layers = [layer.name for layer in _norm_layers(self._keras, engine.model)]
            names = [*layers, *engine.batch_dependent()]
            if names:
                self._training.differs(batch_norm_words(names))
        return self._plan

    def _moving(self) -> list[tuple[Any, Any]]:
        """Seeds, and the state of unknown layers, with their values."""
        model = self.engine.model
        known = {id(variable) for variable in self._norms}
        weights = {id(v) for layer in model._flatten_layers() for v in layer._trainable_variables}
        chosen = [v for v in model.non_trainable_variables if id(v) not in known | weights]
        return list(zip(chosen, self.engine.get(chosen), strict=True))

    def _report_what_moved(self, saved: Any, before: Sequence[tuple[Any, Any]]) -> None:
        """Report the state that changed with each part; once."""
        now = self.engine.get([variable for variable, _ in before])
        changed = [
            variable
            for (variable, old), new in zip(before, now, strict=True)
            if not same(self._keras, old, new)
        ]
        seeds = {id(variable) for variable in seed_states(self.engine.model)}
        drew = any(id(variable) in seeds for variable in changed)
        if drew or self.engine.drew_otherwise(saved):
            self._training.differs(RANDOM_NUMBERS)
        names = [variable.path for variable in changed if id(variable) not in seeds]
        if names:
            self._training.differs(changed_words(names))
        self._has_reported = True

    # Evaluation

    def _assess_all(self, batch: Batch, sizes: Sizes) -> Any:
        engine = self.engine
        predictions = self._predicted(batch, _parts(sizes), training=False)
        engine.track(engine.assess(batch, predictions), sum(sizes))
        return engine.measure(batch, predictions)

    # Batches

    def _unpacked(self, data: Any) -> Batch:
        return Batch(*self._keras.utils.unpack_x_y_sample_weight(data))

    def _samples(self, batch: Batch) -> int:
        leaves = self._keras.tree.flatten(batch.x)
        return samples_in(("x", leaf) for leaf in leaves if leaf is not None)

    def _cut(self, batch: Batch, part: Part) -> Batch:
        return Batch(*(self._rows(piece, part.start, part.stop) for piece in batch))

    def _rows(self, tree: Any, start: int, stop: int) -> Any:
        def cut(leaf: Any) -> Any:
            return leaf if leaf is None else self.engine.rows(leaf, start, stop)

        return self._keras.tree.map_structure(cut, tree)

    def _joined(self, parts: Sequence[Predictions], of: Sequence[Part]) -> Predictions:
        flat = [self._keras.tree.flatten(part.values) for part in parts]
        for leaves, part in zip(flat, of, strict=True):
            rows = part.stop - part.start
            if any(len(leaf.shape) == 0 or leaf.shape[0] != rows for leaf in leaves):
                raise CannotSplit("an output of the model does not have one row per sample")
        concatenate = self._keras.ops.concatenate
        values = [concatenate(pieces, axis=0) for pieces in zip(*flat, strict=True)]
        masks = [
            None if pieces[0] is None else concatenate(pieces, axis=0)
            for pieces in zip(*(part.masks for part in parts), strict=True)
        ]
        packed = self._keras.tree.pack_sequence_as(parts[0].values, values)
        return Predictions(packed, masks)

    def _refuse_whole_numbers(self, predictions: Predictions) -> None:
        for leaf in self._keras.tree.flatten(predictions.values):
            if "float" not in self._keras.backend.standardize_dtype(leaf.dtype):
                raise CannotSplit("an output of the model is not a floating-point number")


def _parts(sizes: Sizes) -> list[Part]:
    samples = sum(sizes)
    return [Part(start, stop, (stop - start) / samples) for start, stop in bounds(sizes)]


class _Averages:
    """Statistics of batch normalisation over the parts of a step.

    Each part starts from the values at the beginning of the step, and the mean of the results is
    kept. So they are updated once per step, as with the whole batch.
    """

    def __init__(self, keras: Any, engine: Engine, variables: Sequence[Any]) -> None:
        self._ops = keras.ops
        self._engine = engine
        self._variables = variables
        self._start = engine.get(variables)
        self._sums = self._start

    def end_of_part(self, share: float) -> None:
        values = self._engine.get(self._variables)
        self._sums = [
            total + (value - start) * share
            for total, value, start in zip(self._sums, values, self._start, strict=True)
        ]
        self._engine.put(self._variables, self._start)

    def end_of_parts(self) -> None:
        self._engine.put(self._variables, self._sums)


def _norm_layers(keras: Any, model: Any) -> list[Any]:
    """Batch normalisation that uses the batch; a frozen layer uses its stored statistics."""
    kind = keras.layers.BatchNormalization
    return [
        layer for layer in model._flatten_layers() if isinstance(layer, kind) and layer.trainable
    ]


def _batch_norms(keras: Any, model: Any) -> list[Any]:
    return [v for layer in _norm_layers(keras, model) for v in layer._non_trainable_variables]


_NOT_REPEATABLE = (
    "the loss is not a mean over samples, so the predictions are computed twice, and the second "
    "time they were different: the model draws random numbers that Keras does not keep, or it has "
    "state between calls"
)
