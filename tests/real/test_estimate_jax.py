"""Estimates for JAX beside what was measured on an NVIDIA H200, driver 580.159.04.

Models and functions are built with real JAX and Keras; no GPU is needed, nothing is computed.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.comparer.inside import INSIDE
from tests.targets import python_of

TOLERANCE = 0.15
MB = 1e6

KERAS = """
import json, sys
import keras
from keras import layers

def mlp():
    return keras.Sequential([
        keras.Input((2048,)), layers.Dense(4096, activation="relu"), layers.BatchNormalization(),
        layers.Dense(4096, activation="relu"), layers.Dropout(0.5),
        layers.Dense(10, activation="softmax"),
    ])

def lstm():
    return keras.Sequential([
        keras.Input((200,), dtype="int32"), layers.Embedding(20000, 128),
        layers.LSTM(256, return_sequences=True), layers.LSTM(256),
        layers.Dense(10, activation="softmax"),
    ])

def transformer():
    inputs = x = keras.Input((256,), dtype="int32")
    x = layers.Embedding(8000, 256)(x)
    for _ in range(4):
        x = layers.LayerNormalization()(
            layers.Add()([x, layers.MultiHeadAttention(8, 32, dropout=0.1)(x, x)]))
        y = layers.Dropout(0.1)(layers.Dense(256)(layers.Dense(1024, activation="gelu")(x)))
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x))

def convolutions():
    return keras.Sequential([
        keras.Input((64, 64, 3)), layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(32, 3, padding="same", activation="relu"), layers.GlobalAveragePooling2D(),
        layers.Dense(10),
    ])

def compiled(build):
    model = build()
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

def tell(**fields):
    print("FOUND " + json.dumps(fields), flush=True)

def highest():
    status = open("/proc/self/status").read().split()
    return int(status[status.index("VmHWM:") + 1])
"""

ON_JAX = (
    KERAS
    + """
from whygpu_work.estimates import with_xla

for build, train in ((mlp, True), (lstm, True), (lstm, False), (transformer, True)):
    model = compiled(build)
    found = with_xla.KerasEstimator(model, train).at(64)
    tell(what=build.__name__, train=train, found=found)
half = with_xla.KerasEstimator(model, True, mixed=True).at(64)
tell(what="half", train=True, found=half)
estimator = with_xla.KerasEstimator(compiled(convolutions), True)
before = highest()
for batch in (1000, 2000, 100000):
    tell(what="convolutions", batch=batch, found=estimator.at(batch))
tell(what="grown", kib=highest() - before)
plain = with_xla.KerasEstimator(compiled(convolutions), True, optimizer="sgd").at(1)
tell(what="sgd", found=plain)
"""
)

FUNCTIONS = """
import json
import jax
import jax.numpy as jnp
from whygpu_work.estimates import with_xla

def array(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)

def layers(weights, x):
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x ** 2)

def recurrent(w, u, x):
    def cell(h, e):
        h = jnp.tanh(h @ w + e @ u)
        return h, h
    return jnp.sum(jax.lax.scan(cell, jnp.zeros((x.shape[1], w.shape[0])), x)[1] ** 2)

def attention(q, k, v):
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0)
    return jnp.einsum("bhqk,bkhd->bqhd", scores, v)

def convolve(x, w):
    return jax.nn.relu(jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

def convolutions(weights, x):
    for weight in weights:
        x = jax.checkpoint(convolve)(x, weight)
    return jnp.mean(x)

WORK = {
    "layers": (jax.grad(layers), ([array(2048, 2048)] * 8, array(8192, 2048))),
    "recurrent": (jax.value_and_grad(recurrent, argnums=(0, 1)),
        (array(512, 512), array(128, 512), array(200, 256, 128))),
    "attention": (attention, (array(16, 1024, 8, 64),) * 3),
    "convolutions": (jax.grad(convolutions), ([array(3, 3, 32, 32)] * 6, array(32, 128, 128, 32))),
    "in place": (jax.jit(lambda x: x * 2, donate_argnums=0), (array(1024, 1024),)),
}
for name, (function, arguments) in WORK.items():
    found = with_xla.FunctionEstimator(function, arguments).at()
    print("FOUND " + json.dumps({"what": name, "found": found}), flush=True)
"""


def run(target: str, script: str) -> list[dict[str, Any]]:
    environ = dict(os.environ, KERAS_BACKEND="jax", PYTHONPATH=str(INSIDE))
    environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    ended = subprocess.run(
        [python_of(target), "-c", script], capture_output=True, text=True, env=environ, timeout=300
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = ended.stdout.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("FOUND ")]


def size(found: dict[str, Any], name: str) -> int:
    return sum(part["bytes"] for part in found["parts"] if part["name"] == name)


def how(found: dict[str, Any], name: str) -> str:
    return next(str(part["how"]) for part in found["parts"] if part["name"] == name)


@pytest.fixture(scope="module")
def on_jax() -> list[dict[str, Any]]:
    return run("jax", ON_JAX)


def one(rows: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    chosen = [row for row in rows if all(row.get(key) == fields[key] for key in fields)]
    assert len(chosen) == 1
    found: dict[str, Any] = chosen[0]["found"]
    return found


@pytest.mark.parametrize(
    ("what", "train", "megabytes"),
    [
        # The peak that JAX counted in fit and predict with the program compiled before; for the
        # LSTM in fit, what its compiler said there: JAX counts 130 MB more, which is rounding.
        ("mlp", True, 406.5),
        ("lstm", True, 990.6),
        ("lstm", False, 670.9),
        ("transformer", True, 2729.2),
        ("half", True, 1616.3),
    ],
)
def test_keras_models_are_near_what_an_h200_took(
    on_jax: list[dict[str, Any]], what: str, train: bool, megabytes: float
) -> None:
    found = one(on_jax, what=what, train=train)
    assert found["peak_bytes"] / MB == pytest.approx(megabytes, rel=TOLERANCE)
    assert found["peak_bytes"] == sum(part["bytes"] for part in found["parts"])
    assert found["least_bytes"] <= megabytes * MB <= found["most_bytes"]


def test_the_outputs_that_predict_keeps_are_in_the_range_and_in_the_words(
    on_jax: list[dict[str, Any]],
) -> None:
    training, inference = (one(on_jax, what="lstm", train=train) for train in (True, False))
    kept = 99 * size(inference, "results")
    assert inference["most_bytes"] >= inference["peak_bytes"] + kept > inference["peak_bytes"]
    assert "up to 100 batches" in " ".join(inference["notes"])
    assert "batches" not in " ".join(training["notes"])


def test_weights_and_optimiser_state_are_counted_and_the_rest_says_that_it_is_modelled(
    on_jax: list[dict[str, Any]],
) -> None:
    adam, sgd = one(on_jax, what="mlp", train=True), one(on_jax, what="sgd")
    weights = size(adam, "weights")
    assert weights == pytest.approx(100.9 * MB, rel=0.001)
    assert size(adam, "optimizer") == pytest.approx(2 * weights, rel=0.001)
    assert size(sgd, "optimizer") < 100
    assert (how(adam, "weights"), how(adam, "activations")) == ("measured", "modelled")
    assert "CUDA plugin" in " ".join(adam["notes"])


def test_more_rows_take_more_and_take_none_of_this_machines_memory(
    on_jax: list[dict[str, Any]],
) -> None:
    sizes = {
        batch: one(on_jax, what="convolutions", batch=batch)["peak_bytes"]
        for batch in (1000, 2000, 100000)
    }
    assert sizes[2000] == pytest.approx(2 * sizes[1000], rel=0.02)
    assert sizes[100000] > 50e9
    grown = next(row["kib"] for row in on_jax if row["what"] == "grown")
    assert grown < 400 * 1024


MEASURED = {"layers": 973.1, "recurrent": 448.8, "attention": 1208.0}


@pytest.mark.parametrize("target", ["jax", "jax-cuda12"])
def test_functions_are_near_what_an_h200_took(target: str) -> None:
    rows = run(target, FUNCTIONS)
    for what, megabytes in MEASURED.items():
        found = one(rows, what=what)
        assert found["peak_bytes"] / MB == pytest.approx(megabytes, rel=TOLERANCE), what
        assert found["least_bytes"] < megabytes * MB < found["most_bytes"], what
        assert how(found, "activations") == ("modelled" if target == "jax" else "compiled")
    # What is computed again instead of kept: XLA's compiler and the model of it agree.
    assert size(one(rows, what="convolutions"), "activations") == pytest.approx(470e6, rel=0.02)
    assert one(rows, what="in place")["peak_bytes"] == 4 << 20
