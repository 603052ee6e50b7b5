"""Estimates for Keras on TensorFlow: as XLA would run the step, or operation by operation.

One process with real TensorFlow and Keras makes all of them; no GPU is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tests.comparer.inside import INSIDE
from tests.targets import python_of
from tools.estimate_table import comparable, estimated, measured

MIB = 1 << 20
LAYERS, WIDTH, BATCH = 6, 1024, 4096

SCRIPT = f"""
import json, sys
from whygpu_work.estimates import jit_choice
assert "keras" not in sys.modules
jit_choice.note_from_now_on()
import keras
import tensorflow as tf
from keras import layers
from whygpu_work.estimates import tensorflow_graph, with_tensorflow
from whygpu_work.loading import Unusable

def tell(what, found):
    print("FOUND " + json.dumps([what, found]), flush=True)

def dense():
    hidden = [layers.Dense({WIDTH}, activation="relu") for _ in range({LAYERS})]
    return keras.Sequential([keras.Input(({WIDTH},)), *hidden, layers.Dense(10)])

def measured():
    return keras.Sequential([
        keras.Input((2048,)), layers.Dense(4096, activation="relu"), layers.BatchNormalization(),
        layers.Dense(4096, activation="relu"), layers.Dropout(0.5),
        layers.Dense(10, activation="softmax")])

def augmented():
    return keras.Sequential([
        keras.Input((32, 32, 3)), layers.RandomRotation(0.1), layers.Flatten(), layers.Dense(10)])

def recurrent():
    return keras.Sequential([keras.Input((9, 8)), layers.LSTM(16), layers.Dense(10)])

class Decorated(layers.Dense):
    @tf.function
    def call(self, x):
        return super().call(x)

class Looping(layers.Dense):
    def call(self, x):
        step = lambda i, y: (i + 1, keras.ops.tanh(y))
        return tf.while_loop(lambda i, y: i < tf.cast(tf.reduce_sum(x), tf.int32),
            step, (0, super().call(x)))[1]

class Masking(layers.Dense):
    def call(self, x):
        return tf.reduce_sum(tf.boolean_mask(super().call(x), x[:, 0] > 0), axis=0, keepdims=True)

class Subclass(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(4)

    def call(self, given):
        return {{"sum": self.dense(given["left"]) + self.dense(given["right"])}}

def called():
    model = Subclass()
    model({{"left": keras.ops.zeros((1, 8)), "right": keras.ops.zeros((1, 8))}})
    return model

class Marked(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(4)

    def call(self, x):
        return self.dense(x)

def only_built():
    model = Marked()
    model.build((None, 8))
    return model

def two_outputs(give):
    x = keras.Input((8,))
    place, kind = layers.Dense(2, name="place")(x), layers.Dense(5, name="kind")(x)
    return lambda: keras.Model(x, give(place, kind))

def text():
    return keras.Sequential([keras.Input((1,), dtype="string"), layers.Identity()])

def one(layer):
    return lambda: keras.Sequential([keras.Input((16,)), layer])

def estimate(what, build, train=True, batch={BATCH}, loss="mse", **options):
    model = build()
    model.compile("adam", loss, **options)
    try:
        found = with_tensorflow.KerasEstimator(model, train).at(batch)
    except Unusable as error:
        tell(what, {{"why": str(error), "kind": type(error).__name__}})
        return
    tell(what, {{"note": " ".join(found["notes"]), "peak": found["peak_bytes"],
        "parts": {{part["name"]: part["bytes"] for part in found["parts"]}}}})

estimate("measured", measured, batch=64)
estimate("auto", dense)
estimate("on", dense, jit_compile=True)
estimate("off", dense, jit_compile=False)
estimate("off, twice the batch", dense, batch={2 * BATCH}, jit_compile=False)
estimate("off, inference", dense, False, jit_compile=False)
estimate("eager", dense, run_eagerly=True)
estimate("augmented", augmented)
estimate("recurrent", recurrent)
estimate("decorated", one(Decorated(16)), jit_compile=False)
estimate("loop", one(Looping(16)), jit_compile=False)
estimate("mask", one(Masking(16)), jit_compile=False)

classes = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
estimate("called", called)
estimate("only built", only_built)
estimate("in a list", two_outputs(lambda *both: list(both)), loss=["mse", classes])
estimate("by name", two_outputs(lambda a, b: {{"place": a, "kind": b}}),
    loss={{"kind": classes, "place": "mse"}})
estimate("in a list, losses by name", two_outputs(lambda *both: list(both)),
    loss={{"kind": classes, "place": "mse"}})
estimate("text", text)

def overwriting(x):
    return tf.matmul(tf.nn.relu(tf.matmul(x, x)), x)

def keeping(x):
    y = tf.matmul(x, x)
    return tf.matmul(tf.nn.relu(y), y)

def reshaping(x):
    y = tf.reshape(tf.matmul(x, x), (256, 1024))
    return tf.matmul(y, y, transpose_b=True)[0]

def forgetting(x):
    tf.matmul(x, x)
    return tf.matmul(x, x) + 1.0

for function in (overwriting, keeping, reshaping, forgetting):
    graph = tf.function(function).get_concrete_function(tf.TensorSpec((512, 512))).graph
    tell(function.__name__, [array.size for array in tensorflow_graph.at_peak(graph).arrays])

tf.config.experimental.enable_op_determinism()
estimate("deterministic", dense)
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    environ = dict(os.environ, KERAS_BACKEND="tensorflow", PYTHONPATH=str(INSIDE))
    environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    command = [python_of("tensorflow-2.21"), "-c", SCRIPT]
    ended = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = ended.stdout.splitlines()
    return dict(json.loads(line[6:]) for line in lines if line.startswith("FOUND "))


def test_auto_is_what_it_would_be_on_a_gpu(told: dict[str, Any]) -> None:
    """On this machine Keras has answered it with no."""
    assert told["auto"] == told["on"]
    assert "would give to XLA" in told["auto"]["note"]


def test_xla_is_modelled_as_for_jax(told: dict[str, Any]) -> None:
    """Measured with JAX on an NVIDIA H200, driver 580.159.04."""
    assert told["measured"]["peak"] == pytest.approx(406.5e6, rel=0.15)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("off", "jit_compile is off"),
        ("off, inference", "jit_compile is off"),
        ("augmented", "its layer random_rotation does not allow it"),
        ("deterministic", "deterministic operations are required"),
        ("decorated", "jit_compile is off"),
        ("recurrent", "its layer lstm uses cuDNN"),
    ],
)
def test_what_xla_does_not_compile_is_modelled_as_it_runs(
    told: dict[str, Any], what: str, why: str
) -> None:
    assert f"XLA does not compile this model ({why})" in told[what]["note"]
    assert "cuDNN" in told[what]["note"]


def test_the_gradients_need_what_every_layer_gave(told: dict[str, Any]) -> None:
    array = BATCH * WIDTH * 4
    for what, times in (("off", 1), ("off, twice the batch", 2)):
        parts = told[what]["parts"]
        held = parts["gradients"] + parts["activations"]
        assert LAYERS * times * array <= held <= (LAYERS + 4) * times * array
    assert told["off, inference"]["parts"]["activations"] <= 2 * array
    parts = told["off"]["parts"]
    assert parts["optimizer"] == pytest.approx(2 * parts["weights"], rel=0.01)
    assert told["off"]["peak"] == sum(parts.values())


def test_a_recurrent_layer_keeps_what_cudnn_keeps(told: dict[str, Any]) -> None:
    """Five numbers for each step and unit, beside the layer's result."""
    steps, units = 9, 16
    assert told["recurrent"]["parts"]["activations"] >= BATCH * steps * units * (5 + 1) * 4
    assert told["recurrent"]["parts"]["workspace"] > 8 * MIB


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("eager", "run_eagerly is set"),
        ("loop", "a loop or a branch"),
        ("mask", "depends on values"),
    ],
)
def test_what_cannot_be_told_without_running_it(told: dict[str, Any], what: str, why: str) -> None:
    assert why in told[what]["why"]
    assert told[what]["kind"] == "CannotTell"


@pytest.mark.parametrize(
    "what", ["called", "only built", "in a list", "by name", "in a list, losses by name"]
)
def test_models_that_say_in_other_ways_what_they_take_and_return(
    told: dict[str, Any], what: str
) -> None:
    assert told[what]["parts"]["weights"] > 100
    assert told[what]["parts"]["activations"] > BATCH


def test_text_is_not_made_up(told: dict[str, Any]) -> None:
    assert "takes text" in told["text"]["why"]


@pytest.mark.parametrize(
    ("what", "arrays"), [("overwriting", 2), ("keeping", 3), ("forgetting", 1)]
)
def test_which_arrays_are_held_at_once(told: dict[str, Any], what: str, arrays: int) -> None:
    assert [size for size in told[what] if size >= MIB] == [MIB] * arrays


def test_another_shape_is_the_same_array(told: dict[str, Any]) -> None:
    assert sorted(size for size in told["reshaping"] if size > 4096) == [MIB // 4, MIB]


QUICK = (("lstm", 64), ("regressor", 8192), ("two_convolutions_graph", 256))


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in measured("tensorflow", "small_models.py")
        if (row["model"], row["batch"]) in QUICK and row["mode"] == "train"
    ],
    ids=lambda row: str(row["model"]),
)
def test_what_was_measured_on_a_gpu_is_within_the_margins(row: dict[str, Any]) -> None:
    at = estimated(row, python_of("tensorflow-2.21")).at
    assert at is not None
    prepared = at.peak_bytes - comparable(row, at)
    assert prepared > 0
    assert at.least_bytes - prepared <= row["peak_bytes"] <= at.most_bytes - prepared
    if not row["model"].endswith("_graph"):
        assert comparable(row, at) == pytest.approx(row["peak_bytes"], rel=0.1)
