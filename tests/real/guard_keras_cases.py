# mypy: ignore-errors
"""Keras models of many kinds, each trained whole and in micro-batches, and compared.

Run in a target as `python guard_keras_cases.py`, with the backend in the environment; prints one
line of JSON.
"""

from __future__ import annotations

import json

import keras
import numpy as np
from keras import layers, ops

import whygpu
from whygpu.errors import UsageError

SAMPLES, BATCH, MICRO, EPOCHS, WIDTH = 22, 8, 3, 2, 8
BACKEND = keras.backend.backend()

made = np.random.default_rng(0)
X = made.normal(size=(SAMPLES, 6)).astype("float32")
Y = made.normal(size=(SAMPLES, 3)).astype("float32")
CLASSES = made.integers(0, 3, size=SAMPLES)
WEIGHTS = made.uniform(0.1, 2.0, size=SAMPLES).astype("float32")
TOKENS = made.integers(1, 7, size=(SAMPLES, 5)) * (np.arange(5) < made.integers(1, 6, (SAMPLES, 1)))
TOKEN_TARGETS = made.normal(size=(SAMPLES, 5, 2)).astype("float32")


def network(*inner, regulariser=None, activity=None, last=None):
    first = layers.Dense(
        WIDTH, "tanh", kernel_regularizer=regulariser, activity_regularizer=activity
    )
    return keras.Sequential([layers.Input((6,)), first, *inner, layers.Dense(3, last)])


def compiled(model, loss="mse", optimizer=None, **options):
    model.compile(optimizer or keras.optimizers.SGD(0.1, momentum=0.9), loss, **options)
    return model


def two_outputs():
    """And two inputs, by their names; of the third output nobody asks anything."""
    inputs = {name: layers.Input((3,), name=name) for name in ("left", "right")}
    inner = layers.Dense(WIDTH, "tanh")(layers.Concatenate()(list(inputs.values())))
    outputs = {name: layers.Dense(3, name=name)(inner) for name in ("a", "b", "c")}
    return keras.Model(inputs, outputs)


def masked():
    tokens = layers.Input((5,), dtype="int32")
    inner = layers.Embedding(7, 4, mask_zero=True)(tokens)
    inner = layers.LSTM(WIDTH, return_sequences=True)(inner)
    return keras.Model(tokens, layers.Dense(2)(inner))


def embedded():
    tokens = layers.Input((5,), dtype="int32")
    return keras.Model(tokens, layers.Dense(3)(layers.Flatten()(layers.Embedding(7, 4)(tokens))))


class Subclass(keras.Model):
    """Not built before its first batch."""

    def __init__(self, added=None):
        super().__init__()
        self.first, self.last, self.added = layers.Dense(WIDTH, "tanh"), layers.Dense(3), added

    def call(self, x):
        inner = self.first(x)
        if self.added is not None:
            self.add_loss(self.added(inner))
        return self.last(inner)


class OwnLoss(Subclass):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.max(ops.abs(y - y_pred)) + 0.01 * ops.sum(ops.square(self.last.kernel))


class OwnStep(Subclass):
    def train_step(self, *arguments):
        return super().train_step(*arguments)


class RandomCalls(layers.Layer):
    """Different at every call, in a way that Keras cannot repeat."""

    calls = 0

    def call(self, x):
        RandomCalls.calls += 1
        return x * (1.0 + RandomCalls.calls)


def between_samples(y, p):
    p = p / ops.sqrt(ops.sum(ops.square(p), axis=-1, keepdims=True) + 1e-6)
    return ops.logsumexp(ops.matmul(p, ops.transpose(p)), axis=1) - ops.sum(y * p, axis=-1)


def over_chosen(y, p):
    chosen = ops.cast(y[:, 0] > 0, p.dtype)
    return ops.sum(chosen * ops.sum(ops.square(y - p), axis=-1)) / ops.sum(chosen)


def explained(y, p):
    return 1 - ops.sum(ops.square(y - p)) / ops.sum(ops.square(y - ops.mean(y)))


def mse(reduction):
    return keras.losses.MeanSquaredError(reduction=reduction)


SAME = {
    "mean": lambda: (compiled(network(), metrics=["mae"]), (X, Y), {}),
    "adam, rate by step": lambda: (
        compiled(
            network(),
            optimizer=keras.optimizers.Adam(
                keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
            ),
            jit_compile="auto" if BACKEND == "jax" else False,
        ),
        (X, Y),
        {},
    ),
    "added mean": lambda: (
        compiled(Subclass(lambda inner: 0.1 * ops.mean(ops.square(inner)))),
        (X, Y),
        {},
    ),
    "sample weights": lambda: (
        compiled(network(), weighted_metrics=["mae"]),
        (X, Y, WEIGHTS),
        {},
    ),
    "class weights, validation": lambda: (
        compiled(network(last="softmax"), "sparse_categorical_crossentropy", metrics=["accuracy"]),
        (X, CLASSES),
        {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}, "validation_split": 0.3},
    ),
    "sum": lambda: (
        compiled(network(regulariser="l2"), mse("sum"), keras.optimizers.SGD(0.001)),
        (X, Y),
        {},
    ),
    "by weight": lambda: (compiled(network(), mse("mean_with_sample_weight")), (X, Y, WEIGHTS), {}),
    "masked": lambda: (compiled(masked(), metrics=["mae"]), (TOKENS, TOKEN_TARGETS), {}),
    "between samples": lambda: (compiled(network(), between_samples), (X, Y), {}),
    "over chosen, eagerly": lambda: (
        compiled(network(), over_chosen, run_eagerly=True),
        (X, Y),
        {},
    ),
    "own loss": lambda: (compiled(OwnLoss()), (X, Y), {}),
    "two outputs": lambda: (
        compiled(two_outputs(), {"a": "mse", "b": "mae"}, loss_weights={"a": 1.0, "b": 0.3}),
        ({"left": X[:, :3], "right": X[:, 3:]}, {"a": Y, "b": 2 * Y}),
        {},
    ),
    "embedding": lambda: (compiled(embedded(), metrics=[explained]), (TOKENS, Y), {}),
    "regularisers, clipping": lambda: (
        compiled(
            network(regulariser="l2", activity="l2"),
            optimizer=keras.optimizers.SGD(0.1, global_clipnorm=0.1),
        ),
        (X, Y),
        {},
    ),
    "accumulation": lambda: (
        compiled(network(), optimizer=keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)),
        (X, Y),
        {},
    ),
}
if BACKEND != "torch":
    SAME["steps at once"] = lambda: (compiled(network(), steps_per_execution=2), (X, Y), {})

REFUSED = {
    "added sum": lambda: compiled(Subclass(lambda inner: 0.1 * ops.sum(ops.square(inner)))),
    "added square": lambda: compiled(Subclass(lambda inner: ops.square(ops.mean(inner)))),
    "added, between samples": lambda: compiled(
        Subclass(lambda inner: 0.1 * ops.mean(ops.square(inner))), between_samples
    ),
    "own step": lambda: compiled(OwnStep()),
}
if BACKEND == "torch":
    REFUSED["not repeatable"] = lambda: compiled(network(RandomCalls()), between_samples)


def values(model):
    return np.concatenate([np.ravel(array) for array in model.get_weights()])


def history_of(make, **options):
    """The history and the weights of a training; in micro-batches if a guard is given options."""
    keras.utils.set_random_seed(1)
    model, (x, y, *weights), more = make()
    given = {"sample_weight": weights[0]} if weights else {}
    fit = {"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0, **given, **more}
    if not options:
        return model.fit(x, y, **fit).history, values(model), None
    callback = whygpu.OomGuard(**options)
    history = model.fit(x, y, callbacks=[callback], **fit).history
    return history, values(model), callback.report


def compared(make):
    first, before, _ = history_of(make)
    second, after, report = history_of(make, micro_batch=MICRO)
    assert first.keys() == second.keys()
    logs = [(np.array(first[name]), np.array(second[name])) for name in first]
    return {
        "history": max(float(np.max(np.abs(a - b))) for a, b in logs),
        "weights": float(np.max(np.abs(before - after))),
        "largest": float(max(np.max(np.abs(before)), *(np.max(np.abs(a)) for a, _ in logs))),
        "steps": report.steps,
        "in_parts": report.steps_in_parts,
        "differences": report.differences,
    }


def refused(make):
    model = make()
    before = None
    try:
        with whygpu.oom_guard(model, micro_batch=MICRO):
            model(X[:2])
            before = values(model)
            model.fit(X, Y, batch_size=BATCH, verbose=0)
    except UsageError as error:
        kept = before is None or bool(np.array_equal(before, values(model)))
        return {"words": str(error), "weights_kept": kept}
    return {"words": "", "weights_kept": True}


def on_batches():
    """train_on_batch: the losses and the weights, without a guard and with one."""
    told = []
    for options in ({}, {"micro_batch": MICRO}):
        keras.utils.set_random_seed(1)
        model = compiled(network())
        with whygpu.oom_guard(model, **options) as guard:
            losses = [float(model.train_on_batch(X[:BATCH], Y[:BATCH])) for _ in range(EPOCHS)]
        told.append({"losses": losses, "weights": values(model).tolist()})
    return {"runs": told, "in_parts": guard.report.steps_in_parts}


class Failing(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise InterruptedError("by hand")


def after_failure():
    """Whose functions a model trains with after a guarded `fit` that was interrupted."""
    model, guard = compiled(network()), whygpu.OomGuard(micro_batch=MICRO)
    try:
        model.fit(X, Y, batch_size=BATCH, verbose=0, callbacks=[guard, Failing()])
    except InterruptedError:
        model.fit(X, Y, batch_size=BATCH, verbose=0)
        model.evaluate(X, Y, batch_size=BATCH, verbose=0)
    return {
        "guarded steps": guard.report.steps,
        "left": sorted(name for name in vars(model) if name.startswith("make_")),
    }


def batch_norm():
    """One step, so that the statistics are those of the same weights."""
    told = {}
    for name, options in (("whole", {}), ("parts", {"micro_batch": MICRO})):
        keras.utils.set_random_seed(1)
        norm = layers.BatchNormalization(name="norm")
        model = compiled(network(norm))
        with whygpu.oom_guard(model, **options) as guard:
            model.fit(X[:BATCH], Y[:BATCH], batch_size=BATCH, verbose=0)
        told[name] = ops.convert_to_numpy(norm.moving_mean).tolist()
        told[f"{name} differs"] = guard.report.differences
    return told


def said(*inner, **options):
    model = compiled(network(*inner))
    try:
        with whygpu.oom_guard(model, micro_batch=MICRO, **options) as guard:
            model.fit(X, Y, batch_size=BATCH, verbose=0)
    except UsageError as error:
        return str(error)
    return guard.report.differences


def half_precision():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        return compared(lambda: (compiled(network()), (X, Y), {}))
    finally:
        keras.config.set_dtype_policy("float32")


def main():
    told = {
        "batch": BATCH,
        "same": {name: compared(make) for name, make in SAME.items()},
        "refused": {name: refused(make) for name, make in REFUSED.items()},
        "on batches": on_batches(),
        "after failure": after_failure(),
        "batch_norm": batch_norm(),
        "dropout": said(layers.Dropout(0.5)),
        "exact": said(layers.BatchNormalization(), exact=True),
        "half": half_precision(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
