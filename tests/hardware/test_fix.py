"""`whygpu fix` on a machine with a GPU: an environment that lacks its GPU gets it in the copy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.hardware.test_run import PYTHON, _gpus

pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")


def test_a_framework_that_lacks_its_gpu_has_it_in_the_mended_copy() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "whygpu", "fix", "--json", "--python", PYTHON],
        capture_output=True,
        text=True,
        timeout=500,
    )
    answer = json.loads(done.stdout)
    if not answer["steps"]:
        pytest.skip(f"nothing to mend in {PYTHON}: {answer['before']['headline']}")
    assert answer["refused"] == ""
    assert answer["before"]["verdict"] != "gpu"
    assert answer["after"]["verdict"] == "gpu", answer["after"]["root_causes"]
