"""The memory of a run is watched, and the program cannot tell the difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launch.programs import PYTHON, WHYGPU, environment, in_shell, run, same_as_bare, script
from tests.schemas import obeys

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")

GIB = 1 << 30

TORCH = """
import types
__version__ = "9.9"
TOTAL = 10 << 30
live = peak = pieces = given = 0

class OutOfMemoryError(RuntimeError):
    pass

class Tensor:
    grad_fn = None
    def __init__(self, size):
        global live, peak, pieces, given
        self.size = 0
        if live + size > TOTAL:
            raise OutOfMemoryError(
                "CUDA out of memory. Tried to allocate %.2f GiB. GPU 0 has a total capacity of "
                "10.00 GiB of which %.2f GiB is free. Of the allocated memory %.2f GiB is "
                "allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
                % (size / 2**30, (TOTAL - live) / 2**30, live / 2**30)
            )
        live += size
        peak = max(peak, live)
        pieces += 1
        given += 1
        self.size = size
    def __del__(self):
        global live, pieces
        live -= self.size
        pieces -= self.size > 0
    def element_size(self):
        return 1
    def nelement(self):
        return self.size

class _C:
    @staticmethod
    def _cuda_memoryStats(index):
        bytes_ = {"all": {"current": live, "peak": peak}}
        counts = {"all": {"current": pieces, "allocated": given}}
        return {"allocated_bytes": bytes_, "reserved_bytes": bytes_, "allocation": counts}

cuda = types.SimpleNamespace(
    _lazy_call=lambda call: call(),
    device_count=lambda: 1,
    is_initialized=lambda: True,
    mem_get_info=lambda index: (TOTAL - live, TOTAL),
    max_memory_reserved=lambda index: peak,
    get_device_name=lambda index: "a GPU of its own",
)
optim = types.SimpleNamespace()
nn = types.SimpleNamespace(Module=())
"""
"""A framework on a GPU that has no more than numbers, and whygpu's way to see them."""


def torch_in(folder: Path, code: str) -> Path:
    script(folder, TORCH, "torch/__init__.py")
    return script(folder, code)


def ended(folder: Path, code: str, *options: str) -> tuple[dict[str, Any], str]:
    report = folder / "report.json"
    program = torch_in(folder, code)
    done = run([*WHYGPU, "--no-repair", *options, "--report", report, "--", PYTHON, program])
    written = json.loads(report.read_text())
    obeys("run", written)
    return written, done.stderr


LEAK = """
import time, torch
results = []
for step in range(1000):
    results.append(torch.Tensor(64 << 20))
    work = torch.Tensor(1 << 30)
    time.sleep(0.005)
    del work
"""


def test_a_leak_is_told_with_its_numbers(tmp_path: Path) -> None:
    report, said = ended(tmp_path, LEAK)
    found = report["out_of_memory"]
    assert (found["place"], found["device"], found["reason"]) == ("gpu", "gpu:0", "leak")
    assert (found["asked"], found["limit"]) == (GIB, 10 * GIB)
    assert found["kept"][0]["name"] == "results"
    assert len(found["curve"]["points"]) > 20
    assert report["explanation"]["root_causes"][0]["cause"] == "oom-leak-or-fragmentation"
    assert "a leak" in said
    assert "asked for  1 GiB" in said


TOO_BIG = """
import time, torch
batch_size = 300
parts = []
for step in range(10):
    layer = {number: torch.Tensor(batch_size << 20) for number in range(34)}
    time.sleep(0.1)
    whole = torch.Tensor(5 * batch_size << 20)
"""


def test_a_program_that_is_too_big_is_told_with_what_would_fit(tmp_path: Path) -> None:
    report, said = ended(tmp_path, TOO_BIG)
    found = report["out_of_memory"]
    assert found["reason"] == "too-big"
    assert found["batch"] == 300
    # 34 parts of 300 MiB and five more at once are needed, and there are 10 GiB.
    assert found["fits_below"] == pytest.approx(300 * 10240 / (39 * 300), abs=2)
    assert report["explanation"]["root_causes"][0]["cause"] == "oom-model-too-big"
    assert "whygpu memory find" in said


def test_what_the_program_prints_and_how_it_ends_stay_the_same(tmp_path: Path) -> None:
    """With the thread that looks at the GPU: exit, os._exit, fork, signals, threads."""
    code = """
import os, signal, sys, threading, time, torch
kept = torch.Tensor(1 << 20)
time.sleep(0.05)
print(threading.active_count(), [thread.name for thread in threading.enumerate()])
signal.signal(signal.SIGALRM, lambda number, frame: print("rung"))
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.pause()
child = os.fork()
if child == 0:
    print("child", threading.active_count(), flush=True)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
sys.exit(3)
"""
    assert same_as_bare([PYTHON, torch_in(tmp_path, code)])[0] == 3


def test_without_a_gpu_nothing_runs_in_the_program(tmp_path: Path) -> None:
    """A thread of ours would show in the kernel's count, and in Python's word on forks."""
    code = """
import torch
with open("/proc/self/status") as file:
    print([line for line in file if line.startswith("Threads")])
"""
    program = torch_in(tmp_path, code)
    torch = tmp_path / "torch" / "__init__.py"
    torch.write_text(
        TORCH.replace("_lazy_call=lambda call: call()", "_lazy_call=lambda call: None")
    )
    assert "Threads:\\t1\\n" in same_as_bare([PYTHON, program])[1]


def test_a_framework_that_cannot_be_asked_is_noted_once(tmp_path: Path) -> None:
    code = "import time, torch\ndel torch._C._cuda_memoryStats\ntime.sleep(0.2)\n"
    _, said = ended(tmp_path, code)
    assert said.count("watching the memory of torch failed") == 1


GROWING = """
import time
kept = []
for step in range(30):
    kept.append(bytearray(4 << 20))
    time.sleep(0.002)
time.sleep(0.3)
"""


def test_the_computers_memory_is_watched_from_outside(tmp_path: Path) -> None:
    """Of the program and what it starts. Nothing here says that rounds were completed."""
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {GROWING!r}])\n"
    found = ended(tmp_path, f"{code}raise MemoryError")[0]["out_of_memory"]
    assert (found["place"], found["reason"]) == ("host", "unknown")
    assert max(point["high"] for point in found["curve"]["points"]) > 100 << 20


def test_where_standard_error_is_thrown_away_the_exception_was_noted(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    program = torch_in(tmp_path, TOO_BIG)
    command = in_shell(*WHYGPU, "--no-repair", "--report", report, "--", PYTHON, program)
    run(["sh", "-c", f"{command} 2>/dev/null"], env=environment())
    found = json.loads(report.read_text())
    assert found["out_of_memory"]["reason"] == "too-big"
    assert found["explanation"]["root_causes"][0]["cause"] == "oom-model-too-big"


def test_the_peak_of_a_small_program_is_its_own(tmp_path: Path) -> None:
    """The kernel's count for a process begins with the size of the one that started it: ours."""
    report = tmp_path / "report.json"
    run([*WHYGPU, "--no-repair", "--report", report, "--", "/bin/sleep", "0.5"])
    assert 0 < json.loads(report.read_text())["peak_memory_bytes"] < 8 << 20
