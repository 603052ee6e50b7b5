"""`whygpu run --profile` on a machine with a GPU."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from tests.hardware.test_run import PYTHON, _gpus

pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")

MODEL = """
import time
import torch
model = torch.nn.Linear(8192, 8192).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.rand(4096, 8192).cuda()

def train():
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

"""
WAITING = f"""{MODEL}
for step in range(150):
    loss = train()
    loss.item()
"""
LOADING = f"""{MODEL}
def load_batch():
    time.sleep(0.05)

for step in range(60):
    load_batch()
    train()
    torch.cuda.synchronize()
"""
PROFILED = f"""{MODEL}
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CUDA]) as own:
    for step in range(100):
        train()
assert any(event.device_time for event in own.key_averages())
"""


def profile_of(program: str, tmp_path: pathlib.Path) -> dict[str, Any]:
    file, report = tmp_path / "program.py", tmp_path / "report.json"
    file.write_text(program)
    words = [sys.executable, "-m", "whygpu", "run", "--profile", "--report", str(report), "--"]
    subprocess.run([*words, PYTHON, str(file)], check=True, timeout=500)
    profile: dict[str, Any] = json.loads(report.read_text())["profile"]
    return profile


def has_torch() -> bool:
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


needs_torch = pytest.mark.skipif(
    not _gpus() or not has_torch(), reason="PyTorch is not installed here"
)


@needs_torch
def test_waiting_for_a_gpu_that_computes_is_no_bottleneck(tmp_path: pathlib.Path) -> None:
    """The loss is read in each step, and the GPU computes all the while."""
    profile = profile_of(WAITING, tmp_path)
    assert profile["on_gpu"]
    assert profile["gpu_timed"]
    assert profile["verdict"] == "computing"
    assert profile["shares"][0]["category"] == "computing"
    assert profile["shares"][0]["share"] > 0.85


@needs_torch
def test_a_gpu_that_waits_for_data_is_seen_idle(tmp_path: pathlib.Path) -> None:
    profile = profile_of(LOADING, tmp_path)
    assert profile["gpu_timed"]
    assert profile["verdict"] == "waiting"
    largest = profile["shares"][0]
    assert largest["category"] == "input"
    assert largest["where"]["text"] == "load_batch()"
    assert profile["headline"].startswith("The GPU computed for")


@needs_torch
def test_a_program_that_uses_the_profiler_keeps_it(tmp_path: pathlib.Path) -> None:
    profile = profile_of(PROFILED, tmp_path)
    assert not profile["gpu_timed"]
    assert any("uses PyTorch's profiler itself" in note for note in profile["notes"])
