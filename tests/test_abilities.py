"""What a machine cannot compute is found out: with interpreters that die as such a machine's do."""

from __future__ import annotations

import pathlib

import pytest

from tests import abilities

DIES = """#!/bin/sh
case "${ONEDNN_MAX_CPU_ISA:-all} $2" in
%s
esac
"""
"""Given what the limit and the program are, says which format it is at and how it ends."""


@pytest.fixture
def targets(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("WHYGPU_TARGETS", str(tmp_path))
    monkeypatch.delenv(abilities.VARIABLE, raising=False)
    return tmp_path


def build(targets: pathlib.Path, cases: str) -> None:
    python = targets / "torch" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(DIES % cases)
    python.chmod(0o755)


def test_a_machine_that_can_do_all(targets: pathlib.Path) -> None:
    build(targets, "*) ;;")
    assert abilities._find_out() == {}


def test_a_limit_that_helps_is_found(targets: pathlib.Path) -> None:
    build(targets, "all*\"'bfloat16'\"*) echo bfloat16; kill -ILL $$ ;;")
    assert abilities._find_out() == {abilities.VARIABLE: "AVX512_CORE_FP16"}


def test_a_lower_limit_is_tried_where_the_first_does_not_help(targets: pathlib.Path) -> None:
    build(targets, "all*|AVX512*) echo bfloat16; kill -ILL $$ ;;")
    assert abilities._find_out() == {abilities.VARIABLE: "AVX2"}


def test_what_no_limit_helps_is_said_for_its_format_alone(targets: pathlib.Path) -> None:
    build(targets, "*\"'bfloat16'\"*) echo bfloat16; kill -ILL $$ ;;")
    assert abilities._find_out() == {"torch bfloat16": "its process died of SIGILL"}


def test_an_error_is_its_own_reason(targets: pathlib.Path) -> None:
    build(targets, '*) echo "RuntimeError: no such kernel" >&2; exit 1 ;;')
    assert set(abilities._find_out().values()) == {"RuntimeError: no such kernel"}
