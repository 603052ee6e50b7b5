"""The binaries of real installs are read as other tools read them, in no time."""

from __future__ import annotations

import time

import pytest

from tests.host.test_elf import assert_like_pyelftools
from tests.real.test_loader_agrees import TARGETS, libraries, site_of
from tests.targets import python_of
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known

SMALL = 20 << 20


@pytest.mark.parametrize("target", TARGETS)
def test_pyelftools_sees_the_same(target: str) -> None:
    """The large libraries are left out: pyelftools takes minutes for their symbols."""
    compared = 0
    for path in libraries(site_of(python_of(target))):
        with open(path, "rb") as file:
            content = file.read(SMALL + 1)
        if len(content) <= SMALL:
            assert_like_pyelftools(content)
            compared += 1
    assert compared


def timed(path: str, question: str) -> tuple[object, float]:
    """The answer to a question about a file, and the least processor time of three times."""
    host = LocalHost()
    times = []
    for _ in range(3):
        began = time.thread_time()
        answer = getattr(host, question)(path)
        times.append(time.thread_time() - began)
    assert isinstance(answer, Known)
    return answer.value, min(times)


@pytest.mark.parametrize("name", ["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"])
def test_tensorflow(name: str) -> None:
    path = str(site_of(python_of("tensorflow-2.21")) / "tensorflow" / name)
    found, seconds = timed(path, "gpu_code")
    assert found == ("sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90")
    # Ten times what it takes: reading all of the file would take a second.
    assert seconds < 0.2
    assert timed(path, "elf")[1] < 0.02


def test_code_for_hopper_only() -> None:
    """As cuobjdump --list-elf names it."""
    site = site_of(python_of("tensorflow-2.21-cuda"))
    found, _ = timed(str(site / "nvidia" / "cublas" / "lib" / "libcublasLt.so.12"), "gpu_code")
    assert isinstance(found, tuple)
    assert "sm_90" in found
    assert "sm_90a" in found


def test_old_tensorflow() -> None:
    site = site_of(python_of("tensorflow-gpu-1.15"))
    path = site / "tensorflow_core" / "python" / "_pywrap_tensorflow_internal.so"
    numbers = (35, 37, 52, 60, 61, 70)
    expected = (*(f"sm_{each}" for each in numbers), *(f"compute_{each}" for each in numbers))
    assert timed(str(path), "gpu_code")[0] == expected
