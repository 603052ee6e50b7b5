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

WAITING = """
import torch
model = torch.nn.Linear(8192, 8192).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.rand(4096, 8192).cuda()
for step in range(150):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    loss.item()
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


@pytest.mark.skipif(not _gpus() or not has_torch(), reason="PyTorch is not installed here")
def test_waiting_for_the_loss_is_seen_at_its_line(tmp_path: pathlib.Path) -> None:
    """All of the GPU's work is waited for in one line, so that is where the time goes."""
    profile = profile_of(WAITING, tmp_path)
    assert profile["on_gpu"]
    assert profile["verdict"] == "computing"
    largest = profile["shares"][0]
    assert largest["category"] == "synchronisation"
    assert largest["where"]["text"] == "loss.item()"
