"""`whygpu memory` on a stub driver, with processes that are really there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.bench import cache
from tests.lab.driver import NoCompiler, StubDriver, StubGpu, StubProcess, build
from tests.patience import PATIENCE

HOLD = """
import mmap, sys
kept = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
print("ready", flush=True)
sys.stdin.read()
"""
"""A process that has these files in its memory, as one that has loaded them."""

NO_PROCESS = 2**22 + 1
"""More than a kernel ever gives out."""


@pytest.fixture
def process_with(tmp_path: Path) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def start(*files: str, **environ: str) -> int:
        paths = []
        for name in files:
            path = tmp_path / "site-packages" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("in memory")
            paths.append(str(path))
        script = tmp_path / "train.py"
        script.write_text(HOLD)
        process = subprocess.Popen(
            [sys.executable, str(script), *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environ},
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield start
    for process in started:
        process.communicate()


def asked(stub: StubDriver, folder: Path, *options: str) -> Any:
    try:
        build(cache())
        environ = stub.install(folder / "driver", cache=cache())
    except NoCompiler as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [sys.executable, "-m", "whygpu", "memory", "--json", *options],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_processes_are_told_by_what_they_have_loaded(tmp_path: Path, process_with: Any) -> None:
    driver = "driver/libcuda.so.580.65.06"
    jax = process_with(driver, "jax_plugins/xla_cuda12/xla_cuda_plugin.so")
    tenth = process_with(
        driver, "jax_cuda12_plugin/_solver.so", XLA_PYTHON_CLIENT_MEM_FRACTION="0.1"
    )
    torch = process_with(driver, "torch/lib/libtorch_cuda.so")
    stranger = process_with("nothing/of-the-drivers.txt")
    held = ((jax, 30900), (tenth, 4500), (torch, 2000), (stranger, 300), (NO_PROCESS, 200))
    rows = tuple(StubProcess(pid, "/usr/bin/python3", mib) for pid, mib in held)
    data = asked(
        StubDriver(gpus=(StubGpu(memory_used_mib=38900, processes=rows), StubGpu())), tmp_path
    )
    first, second = data["gpus"]["known"]
    seen = {
        holder["pid"]: (holder["held_as"], holder["frameworks"].get("known"), holder["command"])
        for holder in first["holders"]
    }
    script = f"{Path(sys.executable).name} train.py"
    assert seen == {
        jax: ("reserved", ["jax"], script),
        tenth: ("reserved", ["jax"], script),
        torch: ("as-needed", ["torch"], script),
        stranger: ("unknown", None, "python3"),
        NO_PROCESS: ("unknown", None, "python3"),
        None: ("nobody", None, ""),
    }
    assert first["free_bytes"]["known"] == (40960 - 38900) << 20
    assert second["holders"] == []
    asks = {new["framework"]: new["asks_bytes"] for new in second["new_processes"]}
    assert asks["jax"] == 30720 << 20


UNDER_RUN = (
    """
from whygpu_bootstrap.memory import curve
curve.watch("torch", lambda: {"gpu:0": 123456789})
import os, time
print(os.getpid(), flush=True)
time.sleep(0.3)
"""
    + HOLD
)
"""A program that has the part of whygpu inside it watch a framework that is none."""


def test_a_program_under_run_tells_what_is_in_use(tmp_path: Path) -> None:
    files = [tmp_path / "libcuda.so.1", tmp_path / "libtorch_cuda.so"]
    for file in files:
        file.write_text("in memory")
    script = tmp_path / "train.py"
    script.write_text(UNDER_RUN)
    under_run = (sys.executable, "-m", "whygpu", "run", "--no-repair", "--quiet", "--")
    run = subprocess.Popen(
        [*under_run, sys.executable, str(script), *map(str, files)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    pid = int(run.stdout.readline())
    assert run.stdout.readline() == "ready\n"
    stub = StubGpu(memory_used_mib=900, processes=(StubProcess(pid, "python", 900),))
    data = asked(StubDriver(gpus=(stub,)), tmp_path)
    run.communicate()
    (holder,) = data["gpus"]["known"][0]["holders"]
    assert holder["in_use_bytes"]["known"] == 123456789
    assert "only the program knows" not in holder["what"]


def test_a_process_of_ones_own_in_the_way_is_no_reason_to_read_its_secrets(
    tmp_path: Path, process_with: Any
) -> None:
    pid = process_with("driver/libcuda.so.1", HF_TOKEN="hf_abcdefghijklmnopqrstuvwxyz")
    stub = StubGpu(memory_used_mib=500, processes=(StubProcess(pid, "python", 500),))
    data = asked(StubDriver(gpus=(stub,)), tmp_path)
    assert "abcdefghij" not in json.dumps(data)
    assert str(tmp_path) not in json.dumps(data)
