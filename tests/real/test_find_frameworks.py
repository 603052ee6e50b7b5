"""`whygpu memory find` on real frameworks, held against the truth: plain processes, bisected.

One model for each framework and each backend of Keras; benchmarks/find_batch.py has more of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from tests.patience import PATIENCE
from tests.targets import python_of
from tools.schemas import find_schema
from whygpu.memory.batch_search import MOST_TRIALS

MIB = 1 << 20
# What a batch takes on the CPU is smooth where its tensors stay on one side of malloc's threshold:
# TensorFlow's below 32 MiB here, PyTorch's above.
KERAS = """
import keras
def made():
    layers = keras.layers
    names = ["tanh", "sigmoid", "softplus"] * 3
    chain = [layers.Activation(name) for name in names]
    return keras.Sequential([layers.Input((2,)), layers.Dense(20_000), *chain, layers.Dense(1)])
"""
KERAS_WIDE = KERAS.replace("20_000", "200_000").replace("* 3", "* 1")
KERAS_TRUTH = """
import numpy
def run(batch):
    model = made()
    model.compile("sgd", "mse")
    for _ in range(3):
        model.train_on_batch(numpy.ones((batch, 2), "float32"), numpy.ones((batch, 1), "float32"))
"""
TORCH = """
import torch
def made():
    nn = torch.nn
    chain = [nn.Tanh(), nn.Sigmoid(), nn.Softplus()]
    net = nn.Sequential(nn.Linear(2, 200_000), *chain, nn.Linear(200_000, 1))
    return net, torch.ones(2, 2)
"""
TORCH_TRUTH = """
def run(batch):
    net, _ = made()
    optimizer = torch.optim.SGD(net.parameters(), 0.001)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(batch, 2)).mean().backward()
        optimizer.step()
"""
JAX = """
import jax, jax.numpy as jnp
def made(batch_size):
    def loss(weights, x):
        x = x @ weights
        for _ in range(6):
            x = jnp.sort(jnp.tanh(x), axis=1)
        return x.mean()
    return jax.value_and_grad(loss), (jnp.ones((2, 20_000)), jnp.ones((batch_size, 2)))
"""
JAX_TRUTH = """
def run(batch):
    function, arguments = made(batch)
    function = jax.jit(function)
    for _ in range(3):
        jax.block_until_ready(function(*arguments))
"""
TENSORFLOW = """
import tensorflow as tf
weights = tf.Variable(tf.ones((2, 20_000)))
def made(batch_size):
    with tf.GradientTape() as tape:
        x = tf.ones((batch_size, 2)) @ weights
        for _ in range(9):
            x = tf.tanh(x)
        loss = tf.reduce_mean(x)
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
"""
TENSORFLOW_TRUTH = """
def run(batch):
    for _ in range(3):
        made(batch)
"""
LAST = """
import sys
run(int(sys.argv[1]))
with open("/proc/self/status") as status:
    print(int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024)
"""


class Case(NamedTuple):
    target: str
    backend: str
    program: str
    truth: str
    limit: int

    def environ(self, folder: Path) -> dict[str, str]:
        return {
            **os.environ,
            "KERAS_BACKEND": self.backend,
            "KERAS_HOME": str(folder),
            "XDG_CACHE_HOME": str(folder),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "OMP_NUM_THREADS": "1",
        }


CASES = {
    "tensorflow": Case("tensorflow-2.21", "tensorflow", TENSORFLOW, TENSORFLOW_TRUTH, 900),
    "keras-tensorflow": Case("tensorflow-2.21", "tensorflow", KERAS, KERAS_TRUTH, 900),
    "keras-jax": Case("jax", "jax", KERAS, KERAS_TRUTH, 700),
    # Where TensorFlow is installed as well: nothing may bring it into the trials.
    "keras-torch": Case("keras-all", "torch", KERAS_WIDE, KERAS_TRUTH, 1000),
    "jax": Case("jax", "jax", JAX, JAX_TRUTH, 700),
    "torch": Case("torch", "torch", TORCH, TORCH_TRUTH, 900),
}


def command(folder: Path, case: Case, what: str, *options: str) -> subprocess.CompletedProcess[str]:
    words = ["memory", "find", what, "--python", python_of(case.target), "--device", "cpu"]
    return subprocess.run(
        [sys.executable, "-m", "whygpu", *words, *options],
        cwd=folder,
        env=case.environ(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def find(folder: Path, case: Case, *options: str, what: str = "program.py:made") -> dict[str, Any]:
    (folder / "program.py").write_text(case.program)
    done = command(folder, case, what, "--json", *options)
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(result, find_schema())
    return result


def fits(folder: Path, case: Case, batch: int) -> bool:
    file = folder / "truth.py"
    file.write_text(case.program + case.truth + LAST)
    done = subprocess.run(
        [python_of(case.target), str(file), str(batch)],
        env=case.environ(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]) <= case.limit * MIB


FULL = ("keras-tensorflow", "keras-jax", "torch")
"""Of these all parts are in other cases: Keras, and what measures each framework."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full) if name in FULL else name for name in CASES],
)
def test_within_five_per_cent_of_the_truth(tmp_path: Path, name: str) -> None:
    """What is found fits, or all but; what is five per cent beyond it does not."""
    case = CASES[name]
    result = find(tmp_path, case, "--limit", f"{case.limit}MiB", "--optimizer", "sgd")
    assert result["outcome"] == "found", result["trials"]
    assert len(result["trials"]) <= MOST_TRIALS
    found = result["batch"]
    assert fits(tmp_path, case, int(found * 0.96)), found
    assert not fits(tmp_path, case, int(found / 0.94) + 1), found
    assert result["frameworks"]


LEAKING = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(64, 20_000), torch.nn.ReLU(), torch.nn.Linear(20_000, 1))
losses = []
def made(batch_size):
    loss = net(torch.ones(batch_size, 64)).mean()
    losses.append(loss)
    (loss * 1.0).backward(retain_graph=True)
"""


def test_a_loss_that_is_kept_with_its_graph_is_a_leak(tmp_path: Path) -> None:
    """The most common leak there is. The same step without it is merely small."""
    case = CASES["torch"]._replace(program=LEAKING)
    result = find(tmp_path, case, "--limit", "1500MiB", "--max", "64")
    assert (result["outcome"], result["batch"]) == ("leaks", None)
    sound = case._replace(program=LEAKING.replace("    losses.append(loss)\n", ""))
    result = find(tmp_path, sound, "--limit", "1500MiB", "--max", "64")
    assert (result["outcome"], result["batch"]) == ("at-largest", 64)


def test_a_saved_model(tmp_path: Path) -> None:
    case = CASES["keras-jax"]
    save = f"{KERAS}\nmade().save({str(tmp_path / 'saved.keras')!r})"
    words = [python_of(case.target), "-c", save]
    subprocess.run(words, env=case.environ(tmp_path), check=True, timeout=PATIENCE)
    result = find(tmp_path, case, "--infer", "--max", "16", what="saved.keras")
    assert (result["outcome"], result["batch"]) == ("at-largest", 16)
    assert {name for name, _ in result["frameworks"]} == {"jax", "keras"}


def test_a_module_that_does_not_say_what_it_takes(tmp_path: Path) -> None:
    case = CASES["torch"]._replace(program=f"{TORCH}\ndef alone():\n    return made()[0]\n")
    (tmp_path / "program.py").write_text(case.program)
    done = command(tmp_path, case, "program.py:alone")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a PyTorch module does not say what it takes: give --input" in done.stderr
    result = find(tmp_path, case, "--input", "2", "--max", "8", what="program.py:alone")
    assert result["outcome"] == "at-largest"


TENSORFLOW_1 = """
import numpy, tensorflow as tf
graph = tf.Graph()
with graph.as_default():
    given = tf.placeholder(tf.float32, [None, 8])
    loss = tf.reduce_mean(tf.layers.dense(tf.layers.dense(given, 512), 1))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    first = tf.global_variables_initializer()
session = tf.Session(graph=graph)
session.run(first)
def made(batch_size):
    session.run(train, {given: numpy.ones([batch_size, 8])})
"""


def test_tensorflow_1(tmp_path: Path) -> None:
    case = Case("tensorflow-gpu-1.15", "tensorflow", TENSORFLOW_1, "", 0)
    result = find(tmp_path, case, "--max", "8")
    assert (result["outcome"], result["batch"]) == ("at-largest", 8), result["traceback"]
    assert result["frameworks"][0][0] == "tensorflow"
    assert result["frameworks"][0][1].startswith("1.15")
