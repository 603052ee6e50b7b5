"""A program that fails under `whygpu run` is explained below its own words."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.launch.programs import PYTHON, WHYGPU, run, script

pytestmark = pytest.mark.slow

OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total "
    "capacity of 39.39 GiB of which 10.00 GiB is free."
)


def test_a_failure_is_explained(tmp_path: Path) -> None:
    program = script(tmp_path, f"raise SystemExit({OUT_OF_MEMORY!r})")
    report = tmp_path / "report.json"
    done = run([*WHYGPU, "--report", report, "--", PYTHON, program])
    assert done.returncode == 1
    assert done.stderr.startswith(OUT_OF_MEMORY + "\n")
    explanation = json.loads(report.read_text())["explanation"]
    assert explanation["verdict"] == "found"
    assert explanation["root_causes"][0]["code"] in done.stderr.removeprefix(OUT_OF_MEMORY)


def test_success_and_silence_are_not(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    for code, quiet in ((f"print({OUT_OF_MEMORY!r})", False), ("raise SystemExit(3)", False)):
        done = run([*WHYGPU, "--report", report, "--", PYTHON, "-c", code])
        assert json.loads(report.read_text())["explanation"] is None
        assert len(done.stderr.splitlines()) == 1, quiet


def test_a_farewell_that_reports_nothing_is_not_explained(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    code = "raise SystemExit('goodbye')"
    done = run([*WHYGPU, "--report", report, "--", PYTHON, "-c", code])
    assert done.returncode == 1
    assert done.stderr.splitlines()[:1] == ["goodbye"]
    assert len(done.stderr.splitlines()) == 2, done.stderr
    assert json.loads(report.read_text())["explanation"]["verdict"] == "unknown"


def test_quiet_keeps_it_to_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    code = f"raise SystemExit({OUT_OF_MEMORY!r})"
    done = run([*WHYGPU, "--quiet", "--report", report, "--", PYTHON, "-c", code])
    assert done.stderr == OUT_OF_MEMORY + "\n"
    assert json.loads(report.read_text())["explanation"]["verdict"] == "found"


def test_an_illegal_instruction_is_not_laid_on_a_processor_that_has_them_all(
    tmp_path: Path,
) -> None:
    if " avx " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX")
    report = tmp_path / "report.json"
    code = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    done = run([*WHYGPU, "--report", report, "--", PYTHON, "-c", code])
    assert done.returncode == 128 + signal.SIGILL
    explanation = json.loads(report.read_text())["explanation"]
    assert "avx-missing-sigill" not in [root["cause"] for root in explanation["root_causes"]]
    assert "illegal instruction" in explanation["headline"]
