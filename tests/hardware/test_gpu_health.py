"""The state of the hardware, and the test under load, on a real GPU.

    pytest tests/hardware/test_gpu_health.py -n 0

shows the whole of `whygpu check --stress`: as text, as JSON, ended by Ctrl-C, refused on a GPU that
somebody uses, and made there all the same. The environment that runs the tests needs a framework
that can compute on the GPU; TARGET names another interpreter that has one. Without a GPU,
everything is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hardware.test_run import _gpus
from whygpu import check, diagnose, snapshot
from whygpu.model.driver import Gpu
from whygpu.model.observed import Known, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import LoadTest, StressedGpu
from whygpu.stress.choosing import LoadPlan, plan_load

pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")

TARGET = os.environ.get("TARGET", sys.executable)
SECONDS = 5.0
LONGEST = 300.0
"""Seconds for one command: a framework starts, and JAX compiles for each format."""
STRESS_TASK = "whygpu_work"
"""A part of the command line of the process that puts GPUs under load."""

OCCUPY = """
import sys, time
import torch
matrix = torch.ones(8192, 8192, device="cuda")
torch.cuda.synchronize()
print("busy", flush=True)
while True:
    product = matrix @ matrix
    torch.cuda.synchronize()
"""
"""A program that keeps the first GPU at work."""


def seen() -> Snapshot:
    return snapshot(TARGET, probe=False)


def plan() -> LoadPlan:
    """Skips if nothing can be tested here."""
    chosen = plan_load(seen(), even_if_busy=False)
    if not isinstance(chosen, Known) or not chosen.value.gpus:
        pytest.skip(f"nothing can be put under load here: {chosen}")
    return chosen.value


def command(*words: str) -> list[str]:
    whygpu = [sys.executable, "-m", "whygpu", "check", "--python", TARGET, "--no-probe"]
    return [*whygpu, "--color", "never", *words]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), capture_output=True, text=True, check=False, timeout=LONGEST
    )


def answer(*words: str) -> dict[str, Any]:
    done = run("--json", *words)
    assert done.returncode in (0, 1, 4), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tests_of(machine: Snapshot) -> list[tuple[Gpu, LoadTest]]:
    assert isinstance(machine.stress, Known), machine.stress
    assert isinstance(machine.driver.gpus, Known)
    gpus = {gpu.number: gpu for gpu in machine.driver.gpus.value}
    return [
        (gpus[each.number], each.test.value)
        for each in machine.stress.value
        if isinstance(each.test, Known)
    ]


def load_processes() -> list[str]:
    listed = subprocess.run(
        ["pgrep", "-af", STRESS_TASK], capture_output=True, text=True, check=False
    ).stdout
    # Others on this machine may run tasks of their own, with another interpreter.
    return [line for line in listed.splitlines() if "main.py" in line and TARGET in line]


@contextlib.contextmanager
def occupied() -> Iterator[int]:
    """The first GPU is in use by a program of PyTorch, with this process number."""
    has_torch = subprocess.run(
        [TARGET, "-c", "import torch; assert torch.cuda.is_available()"],
        capture_output=True,
        check=False,
    )
    if has_torch.returncode != 0:
        pytest.skip("PyTorch cannot occupy a GPU here")
    process = subprocess.Popen([TARGET, "-c", OCCUPY], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "busy\n"
        time.sleep(2)  # NVML averages over up to a second
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_every_fact_is_reported_or_known_to_be_absent() -> None:
    gpus = seen().driver.gpus
    assert isinstance(gpus, Known)
    for gpu in gpus.value:
        assert isinstance(gpu.health, Known), gpu.health
        health = gpu.health.value
        unknown = [name for name in health._fields if isinstance(getattr(health, name), Unknown)]
        assert unknown == []
        assert isinstance(health.pcie, Known)
        assert 1 <= health.pcie.value.width <= health.pcie.value.max_width <= 32


def test_a_gpu_under_load_is_fast_and_right() -> None:
    """Of every GPU that is free: no finding, and most of what its data sheet promises."""
    planned = plan()
    report = check(TARGET, probe=False, stress=SECONDS)
    tested = tests_of(report.snapshot)
    assert len(tested) == len(planned.gpus)
    for gpu, test in tested:
        rights = [result.right for result in test.results]
        assert rights
        assert all(isinstance(right, Known) and right.value for right in rights), test.results
        shares = {rate.name: rate.share for rate in test.rates if rate.share is not None}
        # A virtual machine may copy more slowly over the bus than the bus can.
        least = {name: 0.2 if name in ("to-gpu", "from-gpu") else 0.3 for name in shares}
        assert all(least[name] < share < 1.1 for name, share in shares.items()), shares
        assert isinstance(test.state.clock_mhz, Known), test.state
        if isinstance(test.others, Known):
            assert test.others.value == 0, test.others
        assert gpu.number in {number for number, _ in planned.gpus}
    assert not {"WG114", "WG115"} & {finding.code for finding in report.findings}


def test_the_command_shows_every_speed() -> None:
    plan()
    done = run("--stress", f"{SECONDS:g}")
    assert done.returncode in (0, 1, 4), done.stderr
    assert "Under load:" in done.stdout
    assert "copies in its memory" in done.stdout
    assert "float32 products" in done.stdout
    assert "WRONG" not in done.stdout
    assert "Traceback" not in done.stderr


def test_the_json_can_be_diagnosed_again(tmp_path: pathlib.Path) -> None:
    plan()
    whygpu = [sys.executable, "-m", "whygpu"]
    done = subprocess.run(
        [*whygpu, "snapshot", "--python", TARGET, "--no-probe", "--stress", f"{SECONDS:g}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    assert done.returncode == 0, done.stderr
    saved = tmp_path / "snapshot.json"
    saved.write_text(done.stdout)
    found = json.loads(
        subprocess.run(
            [*whygpu, "check", "--json", "--snapshot", str(saved)],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        ).stdout
    )
    codes = {finding["code"] for finding in found["findings"]}
    assert not {"WG114", "WG115"} & codes
    stress = found["snapshot"]["stress"]["known"]
    assert stress, "each GPU has an entry"


@pytest.mark.parametrize("seconds_until", [1.0, 8.0, 15.0])
def test_ctrl_c_ends_it_and_leaves_nothing(seconds_until: float) -> None:
    """While files are read, while the framework starts, and while the GPU works."""
    plan()
    before = load_processes()
    process = subprocess.Popen(
        command("--stress", "60"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        time.sleep(seconds_until)
        assert process.poll() is None, "it ended before Ctrl-C"
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 130, errors
    assert time.monotonic() - began < 30
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert output == ""
    assert load_processes() == before


def entry(found: dict[str, Any], number: int) -> dict[str, Any]:
    listed: list[dict[str, Any]] = found["snapshot"]["stress"]["known"]
    return next(gpu for gpu in listed if gpu["number"] == number)


def test_a_gpu_in_use_is_refused_and_tested_if_asked_for() -> None:
    planned = plan()
    first = planned.gpus[0][0]
    with occupied() as pid:
        refused = entry(answer("--stress", f"{SECONDS:g}"), first)
        reason = refused["test"]["unknown"]
        assert "--stress-busy" in reason
        # In a container, the driver may list the process by another number, or not at all.
        ways = (f"({pid})", "in use by", "keeps it busy", "not visible")
        assert any(way in reason for way in ways), reason
        forced = check(TARGET, probe=False, stress=SECONDS, stress_busy=True)
    tested = {gpu.number: test for gpu, test in tests_of(forced.snapshot)}
    assert first in tested
    others = tested[first].others
    assert isinstance(others, Known), others
    assert others.value >= 1
    slow = [finding for finding in forced.findings if finding.code == "WG115"]
    assert not [finding for finding in slow if f"GPU {first} " in finding.message]


def test_a_test_that_is_too_short_judges_nothing_that_it_did_not_measure() -> None:
    plan()
    report = check(TARGET, probe=False, stress=0.1)
    assert isinstance(report.snapshot.stress, Known)
    again = diagnose(report.snapshot)
    assert [each.code for each in again.findings] == [each.code for each in report.findings]
    stressed: tuple[StressedGpu, ...] = report.snapshot.stress.value
    assert len(stressed) >= 1
