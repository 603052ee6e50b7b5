"""`whygpu memory find` where trials share a process: a stand-in for PyTorch counts GPU memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE

LIMIT = 1000
"""MiB of the GPU."""
TORCH = f"""
import os
from types import SimpleNamespace

MIB = 1 << 20
__version__ = "2.0"
held = {{"now": 0, "peak": 0}}

class OutOfMemoryError(RuntimeError):
    pass

def take(size):
    if held["now"] + size > {LIMIT}:
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate %.2f MiB." % size)
    held["now"] += size
    held["peak"] = max(held["peak"], held["now"])

def give(size):
    held["now"] -= size

def reset():
    held["peak"] = held["now"]

cuda = SimpleNamespace(
    is_available=lambda: True,
    is_initialized=lambda: True,
    memory_allocated=lambda: int(held["now"] * MIB),
    max_memory_allocated=lambda: int(held["peak"] * MIB),
    max_memory_reserved=lambda: int(held["peak"] * MIB),
    memory_reserved=lambda: int(held["now"] * MIB),
    mem_get_info=lambda: (int(({LIMIT} - held["now"]) * MIB), {LIMIT} * MIB),
    reset_peak_memory_stats=reset,
    empty_cache=lambda: None,
    synchronize=lambda: None,
    get_device_name=lambda: "Stand-in",
)
"""
STEPS = """
import os, time
import torch

with open(os.path.join(os.path.dirname(__file__), "processes"), "a") as stream:
    stream.write("%d\\n" % os.getpid())
tried = []
time.sleep(0.5)

def work(batch_size, sample=3):
    torch.take(batch_size * sample)
    torch.give(batch_size * sample)

def step(batch_size):
    work(batch_size)

def keeps(batch_size):
    if batch_size not in tried:
        tried.append(batch_size)
        torch.take(30)
    work(batch_size)

def works_once(batch_size):
    tried.append(batch_size)
    if len(set(tried)) > 1:
        raise KeyError("called with two sizes")
    work(batch_size)

def flatters(batch_size):
    tried.append(batch_size)
    work(batch_size, 3 if len(set(tried)) > 1 else 3.03)

def dies(batch_size):
    tried.append(batch_size)
    if batch_size * 3 > 1000:
        os.kill(os.getpid(), 9)
    work(batch_size)
"""


@pytest.fixture
def found(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    (tmp_path / "torch.py").write_text(TORCH, encoding="utf-8")
    (tmp_path / "steps.py").write_text(STEPS, encoding="utf-8")
    words = ["memory", "find", f"steps.py:{request.param}", "--json", "--no-cache"]
    words += ["--python", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", "whygpu", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
    )
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    result["processes"] = (tmp_path / "processes").read_text().splitlines()
    return result


def alone(result: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["batch"], each["outcome"]) for each in result["trials"] if each["alone"]]


@pytest.mark.parametrize("found", ["step"], indirect=True)
def test_one_process_searches_and_another_confirms(found: dict[str, Any]) -> None:
    assert found["outcome"] == "found"
    assert 329 <= found["batch"] <= 333
    assert alone(found) == [(8, "fits"), (found["batch"], "fits")]
    assert len(found["trials"]) > 4
    assert len(found["processes"]) == 2


@pytest.mark.parametrize("found", ["keeps"], indirect=True)
def test_a_step_that_keeps_memory_gets_a_new_process_each_time(found: dict[str, Any]) -> None:
    assert 312 <= found["batch"] <= 323
    assert len(found["processes"]) >= len(alone(found)) > 2


@pytest.mark.parametrize("found", ["works_once"], indirect=True)
def test_a_failure_in_a_shared_process_is_repeated_in_a_new_one(found: dict[str, Any]) -> None:
    assert found["outcome"] == "found"
    assert 322 <= found["batch"] <= 333
    assert all(trial["alone"] for trial in found["trials"])


@pytest.mark.parametrize("found", ["flatters"], indirect=True)
def test_what_fits_only_in_a_shared_process_is_no_answer(found: dict[str, Any]) -> None:
    """330 samples fit in a new process, and 333 in one that has tried other batches."""
    assert found["outcome"] == "found"
    assert 318 <= found["batch"] <= 330
    assert (found["batch"], "fits") in alone(found)
    assert "does-not-fit" in dict(alone(found)).values()


@pytest.mark.parametrize("found", ["dies"], indirect=True)
def test_the_end_of_a_shared_process_ends_only_its_trial(found: dict[str, Any]) -> None:
    assert found["outcome"] == "found"
    assert 325 <= found["batch"] <= 333
