"""Running out of memory for real, on the CPU: recognised, and a leak told from what is too big."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import whygpu
from tests.launch.programs import WHYGPU, environment, in_shell, run, script
from tests.targets import python_of

SOURCE = Path(whygpu.__path__[0]).parent

RECOGNISE = """
import json, resource, sys
from whygpu.readers.memory_errors import shortage_in

def told(attempt):
    try:
        attempt()
    except Exception as error:
        found = shortage_in(error)
        print("TOLD", json.dumps(found and [found.of, found.place, found.asked]))

{imports}
resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
{attempts}
"""
FORTY = 40 << 30

NUMPY = """
told(lambda: numpy.ones(5 << 30))
told(lambda: bytearray(40 << 30))
told(lambda: open("/dev/full", "w").write("x" * 100000))
told(lambda: numpy.ones(3).reshape(4))
"""
TORCH = """
told(lambda: torch.ones(10 << 30))
told(lambda: torch.ones(3) @ torch.ones(4))
"""
JAX = """
told(lambda: jax.numpy.ones(10 << 30).block_until_ready())
told(lambda: jax.numpy.ones(3) @ jax.numpy.ones(4))
"""
TENSORFLOW = """
told(lambda: tensorflow.ones(10 << 30))
told(lambda: tensorflow.function(lambda x: x[:, None] * x)(tensorflow.ones(100000)))
told(lambda: tensorflow.io.write_file("/dev/full", "x" * 100000))
told(lambda: tensorflow.ones(3) @ tensorflow.ones(4))
"""


@pytest.mark.parametrize(
    ("target", "imports", "attempts", "expected"),
    [
        ("torch", "import numpy", NUMPY, [["numpy", FORTY], ["system", None], None, None]),
        ("torch", "import torch", TORCH, [["torch", FORTY], None]),
        ("jax", "import jax; jax.numpy.ones(3)", JAX, [["xla", FORTY], None]),
        (
            "tensorflow-2.21",
            "import tensorflow; tensorflow.ones(3)",
            TENSORFLOW,
            [["tensorflow", FORTY], ["tensorflow", 40_000_000_000], None, None],
        ),
    ],
    ids=["numpy", "torch", "jax", "tensorflow"],
)
def test_real_exceptions_are_recognised(
    tmp_path: Path, target: str, imports: str, attempts: str, expected: list[Any]
) -> None:
    program = script(tmp_path, RECOGNISE.format(imports=imports, attempts=attempts))
    environ = environment(PYTHONPATH=str(SOURCE), CUDA_VISIBLE_DEVICES="-1")
    done = run([python_of(target), program], env=environ)
    found = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("TOLD")]
    told = [each and [each[0], each[2]] for each in found]
    assert told == expected, done.stderr
    assert {each[1] for each in found if each} == {"host"}


LIMIT = 3 << 29
LIMITED = f"import resource\nresource.setrlimit(resource.RLIMIT_DATA, ({LIMIT}, {LIMIT}))\n"

TORCH_LEAK = f"""
import time, torch
{LIMITED}
model = torch.nn.Sequential(torch.nn.Linear(8, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 8))
total = 0
for step in range(100000):
    loss = model(torch.randn(512, 8)).square().mean()
    total = total + loss
    time.sleep(0.04)
"""
TORCH_TOO_BIG = f"""
import torch
{LIMITED}
layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()) for _ in range(30)]
model = torch.nn.Sequential(*layers)
optimizer = torch.optim.Adam(model.parameters())
for step in range(100):
    loss = model(torch.randn(130000, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TORCH_TOO_BIG_LATE = f"""
import time, torch
{LIMITED}
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
for step in range(60):
    loss = model(torch.randn(512, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
with torch.no_grad():
    model(torch.ones(4000000, 64))
"""
JAX_LEAK = f"""
import time, jax
{LIMITED}
weights = jax.numpy.ones((8, 8))

@jax.jit
def step(weights, x):
    return weights * 0.999, x @ weights

x = jax.random.normal(jax.random.key(1), (500000, 8))
outputs = []
for number in range(100000):
    weights, output = step(weights, x)
    outputs.append(output.block_until_ready())
    time.sleep(0.04)
"""
TENSORFLOW_LEAK = """
import time, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(8)])
optimizer = tf.keras.optimizers.SGD(0.01)
x = tf.random.normal((500000, 8))
kept = []
for step in range(100000):
    with tf.GradientTape() as tape:
        output = model(x)
        loss = tf.reduce_mean(output)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    kept.append(output)
    time.sleep(0.04)
"""
KERAS_TOO_BIG = f"""
import numpy, keras
WIDTH = 256
class Net(keras.Model):
    def __init__(self, depth=8):
        super().__init__()
        self.inner = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(depth)]
        self.last = keras.layers.Dense(1)
    def call(self, x):
        for layer in self.inner:
            x = layer(x)
        return self.last(x)
model = Net()
model.compile(optimizer="adam", loss="mse")
x = numpy.zeros((250000, 1), "float32")
{LIMITED}
model.fit(x, x, batch_size=len(x), verbose=2)
"""
TENSORFLOW_TOO_BIG = """
import numpy, keras
from keras.layers import Activation, Dense, GlobalAveragePooling1D, Input, RepeatVector
inner = [Activation("tanh") for _ in range(8)]
layers = [Input((1,)), Dense(1), RepeatVector(512), *inner, GlobalAveragePooling1D()]
model = keras.Sequential(layers)
model.compile(optimizer="adam", loss="mse", jit_compile=False)
x = numpy.zeros((200000, 1), "float32")
model.fit(x, x, batch_size=len(x), verbose=2)
"""
"""What oneDNN or XLA cannot have on the CPU ends TensorFlow without a word; this is neither's."""


@pytest.mark.parametrize(
    ("target", "code", "reason", "answer"),
    [
        ("torch", TORCH_LEAK, "leak", "would-have-fitted"),
        # Which of the two depends on what PyTorch takes at its import, and so on the machine.
        ("torch", TORCH_TOO_BIG, "too-big", "close|too-big"),
        ("torch", TORCH_TOO_BIG_LATE, "too-big", "too-big"),
        # Keras is shown on JAX and TensorFlow, a leak on PyTorch and TensorFlow.
        pytest.param("torch", KERAS_TOO_BIG, "too-big", "too-big", marks=pytest.mark.full),
        pytest.param("jax", JAX_LEAK, "leak", "cannot-tell", marks=pytest.mark.full),
        ("jax", KERAS_TOO_BIG, "too-big", "too-big"),
        ("tensorflow-2.21", TENSORFLOW_LEAK, "leak", "cannot-tell"),
        ("tensorflow-2.21", TENSORFLOW_TOO_BIG, "too-big", "no-room-known"),
    ],
    ids=[
        "torch-leak",
        "torch-big",
        "torch-late",
        "keras-torch",
        "jax-leak",
        "keras-jax",
        "tf-leak",
        "keras-tf",
    ],
)
def test_a_leak_is_told_from_what_is_too_big(
    tmp_path: Path, target: str, code: str, reason: str, answer: str
) -> None:
    report = tmp_path / "report.json"
    program = script(tmp_path, code)
    environ = environment(
        CUDA_VISIBLE_DEVICES="-1",
        HOME=str(tmp_path),
        KERAS_BACKEND=target.partition("-")[0],
        # TensorFlow dies of a limit that its small allocations meet; this one is its tensors'. It
        # is that of oneDNN's allocator, which by default only some processors have.
        TF_ENABLE_ONEDNN_OPTS="1",
        TF_MKL_ALLOC_MAX_BYTES=str(LIMIT // 2),
    )
    command: list[str | Path] = [*WHYGPU, "--report", report, "--", python_of(target), program]
    done = run(command, env=environ)
    assert done.returncode == 1, done.stderr
    found = json.loads(report.read_text())
    end = found["out_of_memory"]
    assert (end["place"], end["reason"]) == ("host", reason), done.stderr
    assert end["asked"]
    assert [root["cause"] for root in found["explanation"]["root_causes"]] == ["host-oom"]
    assert ("not a leak" in done.stderr) is (reason != "leak")
    assert "a leak" in done.stderr
    _check_estimate(end, answer, done.stderr)


def _check_estimate(end: dict[str, Any], answer: str, said: str) -> None:
    """Where it was asked for: nobody waits for it after a leak that is certain."""
    told = end["estimate"]
    if (end["reason"], end["confidence"]) == ("leak", "certain"):
        assert told is None
        return
    assert told["answer"] in answer.split("|"), told
    assert "  estimate   " in said
    if told["answer"] != "too-big":
        return
    assert 0 < told["largest"] < told["batch"]
    assert told["needs"] > told["room"] == LIMIT
    if not told["least"]:
        # XLA asked for all of a step's temporary memory at once, and its compiler told how much.
        assert end["asked"] < told["needs"] - told["beside"] < 1.1 * end["asked"]


GROUPS = Path("/sys/fs/cgroup/memory")
EATER = """
import time
kept = []
for step in range(1000):
    kept.append(bytearray(8 << 20))
    time.sleep(0.02)
"""


@pytest.mark.skipif(
    not (GROUPS / "memory.limit_in_bytes").exists() or not os.access(GROUPS, os.W_OK),
    reason="control groups of version 1 that may be made",
)
def test_what_the_kernel_kills_has_its_numbers(tmp_path: Path) -> None:
    group = GROUPS / f"whygpu-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(300 << 20))
        report = tmp_path / "report.json"
        program = script(tmp_path, EATER)
        words = (*WHYGPU, "--no-repair", "--report", report, "--", sys.executable, program)
        done = run(["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec {in_shell(*words)}"])
        assert done.returncode == 137, done.stderr
    finally:
        group.rmdir()
    found = json.loads(report.read_text())
    end = found["out_of_memory"]
    assert (end["place"], end["limit"]) == ("host", 300 << 20)
    assert end["limit_is"].endswith("memory.limit_in_bytes")
    assert found["explanation"]["root_causes"][0]["confidence"] == "certain"
    assert "The kernel ended" in done.stderr
