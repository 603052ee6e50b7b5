"""The process of a load test: however it ends, there is a reason, and nothing survives it."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from tests.kit import machine
from whygpu.model.observed import Known, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.stress.testing import with_stress

pytestmark = pytest.mark.slow
"""Each test starts programs."""

ENDINGS = {
    "import fails": ("raise ImportError('libcudart.so.13')", "ImportError: libcudart.so.13"),
    "crashes": ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
    "hangs": ("import time; time.sleep(600)", "was stopped after 3 s"),
    "no driver": ("class cuda: device_count = staticmethod(lambda: 1)", "the test did not begin"),
}
"""A module torch that does this when it is imported, and what the answer says."""


def stressed(folder: pathlib.Path, torch: str, start_seconds: float = 60) -> Snapshot:
    (folder / "torch.py").write_text(torch + "\n")
    here = machine()
    assert isinstance(here.target.interpreter, Known)
    interpreter = here.target.interpreter.value._replace(path=sys.executable)
    target = here.target._replace(interpreter=Known(interpreter, "a test"))
    return with_stress(
        here._replace(target=target),
        {**os.environ, "PYTHONPATH": str(folder)},
        start_seconds=start_seconds,
        gpu_seconds=0.1,
        even_if_busy=False,
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_however_it_ends_there_is_a_reason(ending: str, tmp_path: pathlib.Path) -> None:
    torch, expected = ENDINGS[ending]
    limit = 2.7 if ending == "hangs" else 60
    found = stressed(tmp_path, torch, limit).stress
    assert isinstance(found, Known)
    (gpu,) = found.value
    assert isinstance(gpu.test, Unknown)
    assert expected in gpu.test.reason


def test_variables_that_change_how_programs_compute_are_left_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import os; raise ImportError([n for n in os.environ if 'TF32' in n or 'XLA_' in n])"
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    found = stressed(tmp_path, text).stress
    assert isinstance(found, Known)
    (gpu,) = found.value
    assert isinstance(gpu.test, Unknown)
    assert "['XLA_PYTHON_CLIENT_PREALLOCATE']" in gpu.test.reason
