"""`whygpu run --profile` says what made real frameworks compile a function again."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest

from tests.patience import PATIENCE
from tests.real.test_profile import RUN
from tests.targets import python_of

JAX = """
import functools, jax, jax.numpy as jnp, numpy as np
w = jnp.ones((8, 8))
"""
TENSORFLOW = """
import tensorflow as tf
x = tf.ones((8, 8))
"""
TORCH = """
import torch
torch._dynamo.config.recompile_limit = 1000
torch._dynamo.config.accumulated_recompile_limit = 10000
w = torch.ones(8, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
"""
CASES = {
    "a shape in a dictionary, JAX": (
        "jax",
        JAX
        + """
@jax.jit
def train_step(w, batch):
    return w - (batch["x"] @ w).sum()
for n in range(40):
    w = train_step(w, {"x": np.ones((n + 1, 8), "float32")})
""",
        "train_step (program.py:5) was compiled {}: batch['x'] had shape (39, 8), then (40, 8)",
    ),
    "a static value, JAX": (
        "jax",
        JAX
        + """
@functools.partial(jax.jit, static_argnames=("rate",))
def train_step(w, rate):
    return w - rate * w.sum()
for n in range(40):
    w = train_step(w, rate=n)
""",
        "train_step (program.py:5) was compiled {}: rate was 38, then 39",
    ),
    "a new function, JAX": (
        "jax",
        JAX
        + """
for n in range(40):
    def train_step(w):
        return w - 0.1 * w.sum()
    w = jax.jit(train_step)(w)
""",
        "train_step (program.py:6) was compiled {}: a new function is made each time, so nothing "
        "compiled is used again",
    ),
    "a Python number, TensorFlow": (
        "tensorflow-2.21",
        TENSORFLOW
        + """
class Trainer:
    @tf.function
    def train_step(self, x, rate):
        return tf.reduce_sum(x) * rate
trainer = Trainer()
for n in range(300):
    trainer.train_step(x, n / 2)
""",
        "train_step (program.py:6) was compiled {}: rate was 149.0, then 149.5",
    ),
    "a new function, TensorFlow": (
        "tensorflow-2.21",
        TENSORFLOW
        + """
def train_step(x):
    return tf.reduce_sum(x)
for n in range(300):
    tf.function(train_step)(x)
""",
        "train_step (program.py:5) was compiled {}: a new function is made each time, so nothing "
        "compiled is used again",
    ),
    "a text, PyTorch": (
        "torch",
        TORCH
        + """
@torch.compile(backend="eager")
def loss(w, name):
    return (w * len(name)).sum()
for n in range(40):
    optimizer.zero_grad()
    loss(w, "batch %d" % n).backward()
    optimizer.step()
""",
        "loss (program.py:8) was compiled {}: name was 'batch 38', and then another value",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_changed_is_named(name: str, tmp_path: pathlib.Path) -> None:
    target, program, expected = CASES[name]
    file = tmp_path / "program.py"
    file.write_text(program)
    report = tmp_path / "report.json"
    words = [*RUN, "--report", str(report), "--", python_of(target), str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    data = json.loads(report.read_text())
    assert not [note for note in data.get("notes", ()) if "finding out" in note]
    shares = {each["category"]: each for each in data["profile"]["shares"]}
    assert shares["compilation"]["detail"] in [
        expected.format(f"{n} times") for n in range(25, 301)
    ]
