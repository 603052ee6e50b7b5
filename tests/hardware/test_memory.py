"""Estimates and the guard against TensorFlow on a real GPU.

WHYGPU_HARDWARE_PYTHON=/path/to/python python -m pytest tests/hardware/test_memory.py
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import whygpu
from tests.hardware.memory_programs import GUARDED_FIT, GUARDED_LOOP, MEASURED
from tests.hardware.test_run import PYTHON, _gpus, needs
from tools.estimate_table import FOLDER, comparable, estimated

pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")


def facts_of(program: str, *words: object) -> dict[str, Any]:
    own = Path(whygpu.__file__).parent.parent
    done = subprocess.run(
        [PYTHON, "-c", program, *map(str, words)],
        env={
            **os.environ,
            "KERAS_BACKEND": "tensorflow",
            "PYTHONPATH": f"{FOLDER}{os.pathsep}{own}",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@pytest.mark.parametrize(
    ("model", "batch"),
    [("regressor", 8192), ("lstm", 256), ("two_convolutions", 256), ("vgg_graph", 64)],
)
def test_what_tensorflow_takes_is_within_the_margins_of_the_estimate(
    model: str, batch: int
) -> None:
    needs("keras", "tensorflow")
    about = {"model": model, "batch": batch, "file": "small_models.py", "mode": "train"}
    facts = facts_of(MEASURED, 6500, "small_models", model, batch, "train")
    row = {**about, "framework": "tensorflow", "mixed": False, **facts}
    at = estimated(row, PYTHON).at
    assert at is not None
    prepared = at.peak_bytes - comparable(row, at)
    assert at.least_bytes - prepared <= facts["peak_bytes"] <= at.most_bytes - prepared


@pytest.mark.parametrize(("program", "batch"), [(GUARDED_LOOP, 1536), (GUARDED_FIT, 4096)])
def test_the_guard_computes_a_step_of_tensorflow_in_parts(program: str, batch: int) -> None:
    needs("keras", "tensorflow")
    facts = facts_of(program, 1536, batch)
    assert facts["steps"] == 2
    assert facts["in_parts"] >= 1
