"""A second opinion on a plan, from a program that resolves for real or fails to."""

from __future__ import annotations

import pathlib

import pytest

from tests.cases import each
from tests.planner.small_table import GTX_1080, TABLE, machine
from whygpu.api.verification import uv_platform, verify
from whygpu.model.install_plan import Plan
from whygpu.model.machine_spec import PLATFORMS
from whygpu.model.observed import Known, Unknown
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import parse_all


def a_plan() -> Plan:
    found = make_plan(machine(), parse_all(["tensorflow", "jax"]), TABLE).plan
    assert found is not None
    return found


def uv(folder: pathlib.Path, script: str, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A program called uv, alone on PATH, that notes what it was asked."""
    program = folder / "uv"
    program.write_text(f'#!/bin/sh\necho "$@" > {folder}/words\nfor last; do :; done\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "words"


def test_uv_is_asked_for_the_machine_that_is_planned_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = uv(tmp_path, f'cat "$last" > {tmp_path}/wanted', monkeypatch)
    outcome = verify(a_plan(), machine())
    assert outcome.text == "uv pip compile finds every package and no conflict"
    assert not outcome.refuted
    asked = words.read_text()
    assert "--python-version 3.11 --python-platform x86_64-manylinux_2_39" in asked
    assert (tmp_path / "wanted").read_text().split() == [
        "tensorflow[and-cuda]==2.20.0",
        "jax[cuda12]==0.7.2",
    ]


def test_uv_is_asked_for_the_index_of_the_build(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = uv(tmp_path, "exit 0", monkeypatch)
    where = machine(gpu=GTX_1080)
    plan = make_plan(where, parse_all(["torch"]), TABLE).plan
    assert plan is not None
    assert not verify(plan, where).refuted
    assert "--torch-backend=cu126" in words.read_text("utf-8").split()


def test_a_refusal_refutes_the_plan_and_is_quoted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv(tmp_path, "echo 'No solution found: a needs b' >&2; exit 1", monkeypatch)
    outcome = verify(a_plan(), machine())
    assert outcome.refuted
    assert outcome.text == "uv pip compile refuses the plan: No solution found: a needs b"


def test_a_failure_of_another_kind_refutes_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv(tmp_path, "echo 'no route to host' >&2; exit 2", monkeypatch)
    outcome = verify(a_plan(), machine())
    assert not outcome.refuted
    assert outcome.text == "uv pip compile failed: no route to host"


def test_a_package_without_a_wheel_refutes_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "No solution found: termcolor, because building from source is disabled"
    uv(tmp_path, f"echo '{said}' >&2; exit 1", monkeypatch)
    assert not verify(a_plan(), machine()).refuted


@pytest.mark.slow
def test_pip_stands_in_for_uv(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of an index that is not there: it fails, and says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    outcome = verify(a_plan(), machine())
    assert outcome.text.startswith("pip install --dry-run ")
    assert "No matching distribution" in outcome.text or "not available" in outcome.text
    assert not outcome.refuted


@each(
    ("glibc", "name"),
    [("2.17", "2_17"), ("2.27", "2_28"), ("2.30", "2_31"), ("2.35", "2_35"), ("2.42", "2_40")],
)
def test_uv_gets_a_glibc_that_it_has_a_name_for(glibc: str, name: str) -> None:
    where = machine()._replace(glibc=Known(glibc, "a test"))
    assert uv_platform(where) == ("--python-platform", f"x86_64-manylinux_{name}")


@each("platform", PLATFORMS)
def test_uv_gets_a_name_for_every_platform(platform: str) -> None:
    where = machine()._replace(platform=Known(platform, "a test"), glibc=Unknown("not known"))
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}
    part = platform.partition("_")[2]
    assert uv_platform(where)[1].startswith(architecture.get(part, part))
