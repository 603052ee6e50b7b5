"""`whygpu run` on a real GPU, with the frameworks of WHYGPU_HARDWARE_PYTHON (default: our own).

WHYGPU_HARDWARE_PYTHON=/path/to/python python -m pytest tests/hardware
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.launch.programs import script
from whygpu.api import snapshot
from whygpu.model.observed import Known

PYTHON = os.environ.get("WHYGPU_HARDWARE_PYTHON", sys.executable)
WHYGPU = (sys.executable, "-m", "whygpu", "run")
GIB = 1 << 30


def _gpus() -> int:
    gpus = snapshot(sys.executable, probe=False).driver.gpus
    return len(gpus.value) if isinstance(gpus, Known) else 0


pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")


def needs(*modules: str) -> None:
    """Skip where one cannot be imported; Keras is followed by its backend."""
    for module in modules:
        environ = {**os.environ, "KERAS_BACKEND": modules[-1]}
        command = [PYTHON, "-c", f"import {module}"]
        if subprocess.run(command, env=environ, capture_output=True).returncode:
            pytest.skip(f"{PYTHON} has no {module}")


class Seen(NamedTuple):
    code: int
    facts: dict[str, Any]
    said: str
    report: dict[str, Any]


def under(folder: Path, code: str, *options: str, **environ: str) -> Seen:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    program = script(folder, code)
    done = subprocess.run(
        [*WHYGPU, *options, "--report", str(report), "--", PYTHON, str(program)],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=200,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    facts = json.loads(lines[-1]) if lines else {}
    written = json.loads(report.read_text()) if report.exists() else {}
    return Seen(done.returncode, facts, done.stderr, written)


TORCH = """
import json, torch
device = "cuda" if torch.cuda.is_available() else "cpu"
product = torch.ones(512, 512, device=device) @ torch.ones(512, 512, device=device)
image = torch.nn.Conv2d(3, 8, 3).to(device)(torch.ones(1, 3, 32, 32, device=device))
try:
    torch.empty(3 << 30, dtype=torch.uint8, device=device)
    fits = True
except torch.OutOfMemoryError:
    fits = False
print(json.dumps({
    "device": str(image.device),
    "cudnn": torch.backends.cudnn.enabled,
    "tf32": torch.backends.cuda.matmul.allow_tf32,
    "fits": fits,
    "gpus": torch.cuda.device_count(),
}))
"""
JAX = """
import json, jax
(jax.numpy.ones((512, 512)) @ jax.numpy.ones((512, 512))).block_until_ready()
device = jax.devices()[0]
limit = (device.memory_stats() or {}).get("bytes_limit")
print(json.dumps({"platform": device.platform, "limit": limit}))
"""
KERAS = """
import json, numpy, keras
model = keras.Sequential([keras.layers.Input((8, 4)), keras.layers.LSTM(8), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((64, 8, 4)), numpy.ones((64, 1)), epochs=2, verbose=0)
print(json.dumps({"backend": keras.backend.backend(), "cudnn": model.layers[0].use_cudnn}))
"""


def test_torch_on_the_gpu(tmp_path: Path) -> None:
    needs("torch")
    seen = under(tmp_path, TORCH, "--device", "gpu:0", "--require", "gpu")
    assert (seen.code, seen.facts["device"], seen.facts["gpus"]) == (0, "cuda:0", 1), seen.said
    assert (seen.report["device"], seen.report["fallback"]) == ("gpu", False)
    assert seen.report["peak_memory_bytes"] >= 3 * GIB
    assert "ran on the GPU (PyTorch" in seen.said


def test_torch_within_limits(tmp_path: Path) -> None:
    needs("torch")
    seen = under(tmp_path, TORCH, "--memory", "2GiB", "--cudnn", "off", "--tf32", "off")
    assert seen.facts == {
        "device": "cuda:0",
        "cudnn": False,
        "tf32": False,
        "fits": False,
        "gpus": _gpus(),
    }, seen.said
    assert seen.report["peak_memory_bytes"] < 2 * GIB


def test_jax(tmp_path: Path) -> None:
    needs("jax")
    seen = under(tmp_path, JAX, "--memory", "2GiB", "--require", "gpu")
    assert (seen.code, seen.facts["platform"], seen.report["device"]) == (0, "gpu", "gpu")
    assert 1.9 * GIB < seen.facts["limit"] < 2.1 * GIB
    cpu = under(tmp_path, JAX, "--device", "cpu")
    assert (cpu.facts["platform"], cpu.report["device"]) == ("cpu", "cpu")


TENSORFLOW = """
import json, tensorflow as tf
with tf.device("/GPU:0"):
    product = tf.ones((512, 512)) @ tf.ones((512, 512))
print(json.dumps({"device": product.device}))
"""
POLICY = ("--memory", "4GiB", "--tf32", "off", "--deterministic")


@pytest.mark.parametrize(
    ("framework", "code"), [("torch", TORCH), ("jax", JAX), ("tensorflow", TENSORFLOW)]
)
def test_the_framework_reports_the_policy_to_be_in_force(
    tmp_path: Path, framework: str, code: str
) -> None:
    needs(framework)
    seen = under(tmp_path, code, *POLICY, "--require", "gpu")
    assert seen.code == 0, seen.said
    states = {part["part"]: part["state"] for part in seen.report["in_force"]}
    assert states == {"memory": "in-force", "tf32": "in-force", "deterministic": "in-force"}, (
        seen.report["in_force"]
    )


@pytest.mark.parametrize(
    ("framework", "code", "undone"),
    [
        ("torch", "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n" + TORCH, "tf32"),
        (
            "torch",
            "import torch\ntorch.cuda.set_per_process_memory_fraction(1.0)\n" + TORCH,
            "memory",
        ),
        (
            "tensorflow",
            TENSORFLOW.replace(
                "with", "tf.config.experimental.enable_tensor_float_32_execution(True)\nwith"
            ),
            "tf32",
        ),
    ],
)
def test_what_the_program_undoes_is_not_in_force(
    tmp_path: Path, framework: str, code: str, undone: str
) -> None:
    needs(framework)
    seen = under(tmp_path, code, *POLICY)
    states = {part["part"]: part["state"] for part in seen.report["in_force"]}
    assert states.pop(undone) == "not-in-force", seen.report["in_force"]
    assert set(states.values()) == {"in-force"}
    assert "policy NOT in force" in seen.said


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_keras(tmp_path: Path, backend: str) -> None:
    needs("keras", backend)
    options = ("--require", "gpu", "--cudnn", "off", "--trace")
    seen = under(tmp_path, KERAS, *options, KERAS_BACKEND=backend)
    assert (seen.code, seen.report["device"]) == (0, "gpu"), seen.said
    assert seen.facts == {"backend": backend, "cudnn": False}
    assert any(op["device"].startswith("gpu") for op in seen.report["trace"]["ops"])


def test_the_cpu_leaves_the_gpu_untouched(tmp_path: Path) -> None:
    """No process of the run holds a CUDA context, or any file of the driver, while it works."""
    needs("torch")
    program = script(
        tmp_path,
        "import os, time, torch\n"
        "torch.ones(64, 64) @ torch.ones(64, 64)\n"
        "print(os.getpid(), torch.cuda.is_available(), flush=True)\n"
        "time.sleep(20)\n",
    )
    process = subprocess.Popen(
        [*WHYGPU, "--device", "cpu", "--", PYTHON, str(program)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    pid, available = process.stdout.readline().split()
    time.sleep(1)
    asked = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
    holders = subprocess.run(asked, capture_output=True, text=True).stdout.split()
    files = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
    process.terminate()
    process.wait(30)
    assert available == "False"
    assert pid not in holders
    assert not {name for name in files if name[:11] == "/dev/nvidia" and name[11:].isdigit()}


def test_what_cannot_be_met(tmp_path: Path) -> None:
    needs("torch")
    assert under(tmp_path, TORCH, "--device", "gpu:99").code == 126
    hidden = under(tmp_path, TORCH, "--require", "gpu", CUDA_VISIBLE_DEVICES="")
    assert (hidden.code, hidden.facts) == (126, {})
    on_cpu = under(tmp_path, "import torch; torch.ones(1)", "--require", "gpu")
    assert (on_cpu.code, on_cpu.report["device"]) == (1, "cpu")
