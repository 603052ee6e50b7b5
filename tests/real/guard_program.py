# mypy: ignore-errors
"""One small training, run in a target: freely, and short of memory, without and with the guard.

Run as `python guard_program.py torch|jax|keras`; the backend of Keras is in the environment. It
prints one line of JSON. The memory is limited by the operating system, so that it is the
framework's own allocator that fails.

The model has a wide inner layer, which the batch makes large. Besides, it has a ledger: one weight
for each sample, whose gradient is one over the size of the batch whenever the sample has taken part
in a step. So the ledger counts, in the weights themselves, what was trained on.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pathlib
import resource
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import whygpu
from whygpu.readers.memory_errors import shortage_in

SAMPLES, BATCH, EPOCHS, RATE = 160, 64, 2, 0.005
LENGTH = 512
WIDTH = 1024 if os.environ.get("KERAS_BACKEND") == "tensorflow" else 512
ALLOWED = {"torch": 150, "jax": 110, "tensorflow": 230}
"""MiB beyond what the process holds when training begins: not enough for the whole batch."""


class Trained(NamedTuple):
    losses: list[float]
    weights: list[float]
    ledger: list[float]
    drawn: list[list[int]]
    """Which samples the data source gave out, batch by batch."""
    report: dict[str, Any]
    evaluated: list[float] = []
    """Losses of all samples in one batch, after the training."""


class Source:
    """Batches by number, each in its own order, and a record of which were asked for."""

    def __init__(self, order: int, batch: int = BATCH) -> None:
        made = np.random.default_rng(0)
        self.x = made.normal(size=(SAMPLES, LENGTH, 4)).astype("float32")
        self.y = made.normal(size=(SAMPLES, LENGTH, 1)).astype("float32")
        mixed = np.random.default_rng(order)
        starts = range(0, SAMPLES, batch)
        self.batches = [np.arange(start, min(start + batch, SAMPLES)) for start in starts]
        if order:
            self.batches = [mixed.permutation(rows) for rows in self.batches]
        self.drawn: list[list[int]] = []

    def __getitem__(self, index: int) -> tuple[Any, Any, Any]:
        rows = self.batches[index]
        self.drawn.append(sorted(int(row) for row in rows))
        return self.x[rows], self.y[rows], rows.astype("int32")


Train = Callable[[Source, bool], Trained]


def initial_weights() -> list[Any]:
    made = np.random.default_rng(1)
    shapes = ((4, WIDTH), (WIDTH, 1))
    return [(made.normal(size=s) / np.sqrt(s[0])).astype("float32") for s in shapes]


def train_torch(source: Source, guarded: bool) -> Trained:
    import torch

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(*values.shape, bias=False) for values in initial_weights()]
    for layer, values in zip(layers, initial_weights(), strict=True):
        layer.weight.data = torch.tensor(values.T.copy())
    model = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])
    ledger = torch.zeros(SAMPLES, requires_grad=True)
    optimizer = torch.optim.SGD([*model.parameters(), ledger], lr=RATE)

    def loss_of(x: Any, y: Any, rows: Any) -> Any:
        return ((model(x) - y) ** 2).mean() + ledger[rows].mean()

    losses = []
    with whygpu.oom_guard(model, optimizer) as guard:
        for _ in range(EPOCHS):
            for index in range(len(source.batches)):
                batch = [torch.from_numpy(array) for array in source[index]]
                optimizer.zero_grad()
                if guarded:
                    loss = guard.backward(loss_of, *batch)
                else:
                    loss = loss_of(*batch)
                    loss.backward()
                optimizer.step()
                losses.append(loss.item())
    weights = [value for layer in layers for value in layer.weight.detach().flatten().tolist()]
    return Trained(losses, weights, ledger.tolist(), source.drawn, guard.report._asdict())


def train_jax(source: Source, guarded: bool) -> Trained:
    import jax
    import jax.numpy as jnp

    def loss_of(params: Any, x: Any, y: Any, rows: Any) -> Any:
        inner, outer, ledger = params
        out = jnp.tanh(x @ inner) @ outer
        return ((out - y) ** 2).mean() + ledger[rows].mean()

    guard = whygpu.oom_guard()
    step = guard.value_and_grad(loss_of) if guarded else jax.jit(jax.value_and_grad(loss_of))
    params = [*(jnp.asarray(v) for v in initial_weights()), jnp.zeros(SAMPLES)]
    losses = []
    for _ in range(EPOCHS):
        for index in range(len(source.batches)):
            loss, gradient = step(params, *source[index])
            params = [p - RATE * g for p, g in zip(params, gradient, strict=True)]
            losses.append(float(loss))
    weights = np.concatenate([np.ravel(p) for p in params[:2]]).tolist()
    return Trained(losses, weights, params[2].tolist(), source.drawn, guard.report._asdict())


def train_keras(source: Source, guarded: bool) -> Trained:
    import keras

    class Data(keras.utils.PyDataset):
        def __len__(self) -> int:
            return len(source.batches)

        def __getitem__(self, index: int) -> Any:
            x, y, rows = source[index]
            return (x, rows), (y, np.zeros((len(rows), 1), "float32"))

    class Curve(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            losses.append(float(logs["loss"]))

    losses: list[float] = []
    model = keras_model(keras)
    with whygpu.oom_guard(model) as guard:
        if not guarded:
            guard.__exit__(None, None, None)
        model.fit(Data(), epochs=EPOCHS, verbose=0, shuffle=False, callbacks=[Curve()])
        x, y, rows = source.x, source.y, np.arange(SAMPLES, dtype="int32")
        targets = y, np.zeros((SAMPLES, 1), "float32")
        evaluated = model.evaluate((x, rows), targets, batch_size=SAMPLES, verbose=0)
    *weights, ledger = model.get_weights()
    flat = np.concatenate([array.ravel() for array in weights]).tolist()
    told = ledger.ravel().tolist(), source.drawn, guard.report._asdict()
    return Trained(losses, flat, *told, [float(loss) for loss in evaluated])


def keras_model(keras: Any) -> Any:
    layers = keras.layers
    x, rows = layers.Input((LENGTH, 4)), layers.Input((), dtype="int32")
    first, last = (keras.initializers.Constant(values) for values in initial_weights())
    if keras.backend.backend() == "tensorflow":
        # Matrix products of TensorFlow on the CPU take memory in a way that ends the process when
        # there is none; what is repeated and averaged is large without them.
        inner = layers.Dense(WIDTH, use_bias=False, kernel_initializer=first)(x[:, 0])
        inner = layers.Activation("tanh")(layers.RepeatVector(LENGTH)(inner))
        inner = layers.GlobalAveragePooling1D()(inner)
        inner = layers.Dense(1, use_bias=False, kernel_initializer=last)(inner)
        out = layers.RepeatVector(LENGTH)(inner)
    else:
        inner = layers.Dense(WIDTH, "tanh", use_bias=False, kernel_initializer=first)(x)
        out = layers.Dense(1, use_bias=False, kernel_initializer=last)(inner)
    ledger = layers.Embedding(SAMPLES, 1, embeddings_initializer="zeros")(rows)
    model = keras.Model((x, rows), (out, ledger))
    model.compile(keras.optimizers.SGD(RATE), loss=["mse", lambda y, p: p[:, 0]])
    return model


def allow(mebibytes: int) -> None:
    gc.collect()
    # What was freed and kept for later would be there for the taking.
    ctypes.CDLL(None).malloc_trim(0)
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
    limit = held * 1024 + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def without_memory(train: Train) -> str:
    """How the training ends without a guard."""
    try:
        train(Source(0), False)
    except Exception as error:
        shortage = shortage_in(error)
        return f"{type(error).__name__}, {'out of memory' if shortage else 'something else'}"
    return "finished"


def main(framework: str) -> None:
    train = {"torch": train_torch, "jax": train_jax, "keras": train_keras}[framework]
    told: dict[str, Any] = {
        "setting": {"samples": SAMPLES, "batch": BATCH, "epochs": EPOCHS, "rate": RATE},
        "reference": train(Source(0), False)._asdict(),
        "reordered": [train(Source(order), False)._asdict() for order in (1, 2)],
        "smaller": train(Source(0, BATCH // 2), False)._asdict(),
    }
    allow(ALLOWED[os.environ.get("KERAS_BACKEND", framework)])
    told["bare"] = without_memory(train)
    told["guarded"] = train(Source(0), True)._asdict()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
