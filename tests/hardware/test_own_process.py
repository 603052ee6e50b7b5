"""A program that holds a GPU and asks about it, as the kernel of a notebook does."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.hardware.test_run import PYTHON, _gpus

pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")

ASKS = """
import subprocess, sys
torch = __import__("torch")
held = torch.zeros(2**28, device="cuda")
print(subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout)
"""


def test_the_program_that_asks_is_not_another_process() -> None:
    asked = [sys.executable, "-m", "whygpu", "memory", "--json"]
    found = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
    if found.returncode:
        pytest.skip(f"no PyTorch in {PYTHON}")
    child = subprocess.Popen(
        [PYTHON, "-c", ASKS, *asked], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    answer, _ = child.communicate(timeout=120)
    holders = [
        holder
        for gpu in json.loads(answer)["gpus"]["known"]
        for holder in gpu["holders"]
        if holder["pid"] == child.pid
    ]
    if not holders:
        pytest.skip("the driver numbers processes of another namespace")
    assert [holder["is_asking"]["known"] for holder in holders] == [True]
