"""The worker for instruction sets, on processors that QEMU emulates."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.collectors.test_instructions import ON_X86
from tests.patience import PATIENCE
from whygpu.collectors import instructions


@ON_X86
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-x86_64 is not installed")
@pytest.mark.parametrize(
    ("model", "runs", "traps"),
    [
        ("Nehalem", ["sse4_2"], ["avx", "avx2", "avx512f"]),
        ("SandyBridge", ["sse4_2", "avx"], ["avx2", "fma"]),
        ("Haswell", ["avx", "avx2", "fma", "f16c"], ["avx512f", "avx512_bf16"]),
    ],
)
def test_an_emulated_processor(model: str, runs: list[str], traps: list[str]) -> None:
    command = ["qemu-x86_64", "-cpu", model, sys.executable, "-I", "-S", instructions.WORKER]
    done = subprocess.run(
        [*command, *runs, *traps], capture_output=True, text=True, timeout=PATIENCE
    )
    expected = {**dict.fromkeys(runs, "runs"), **dict.fromkeys(traps, "traps")}
    assert json.loads(done.stdout) == {"outcomes": expected}
