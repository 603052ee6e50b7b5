"""What is said to be proven: rows that can be true, and lines that say it."""

from __future__ import annotations

import pathlib
from typing import get_args

import pytest

from whygpu.causes import catalogue, find_cause
from whygpu.tables import proofs
from whygpu.tables.lab_proofs import ROWS
from whygpu.tables.proof_rows import LabProof, LabResult
from whygpu.tables.proofs import NOT_PROVEN, ON_A_GPU, proofs_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_rows_are_about_causes_that_exist_and_say_why_a_remedy_was_not_carried_out() -> None:
    assert len({row[:4] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert find_cause(row.cause) is not None, row
        assert row.result in get_args(LabResult), row
        assert row.detail or row.result == "mends", row
        assert not any(
            folder in row.text for folder in ("/tmp/", "/home/", "/root/", ".targets")
        ), row


def test_what_was_seen_on_a_gpu_is_in_the_document_that_is_named() -> None:
    for sighting in ON_A_GPU:
        cause = find_cause(sighting.cause)
        assert cause is not None
        text = (ROOT / sighting.source).read_text()
        assert sighting.machine in text
        assert cause.code in text


def test_the_same_remedy_in_several_scenarios_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        LabProof("a", "cudnn-missing", "tensorflow", 1, "Install it", "mends", "with stubs"),
        LabProof("b", "cudnn-missing", "tensorflow", 1, "Install it", "mends", "with stubs"),
        LabProof("b", "cudnn-missing", "tensorflow", 2, "Reboot", "not-here", "needs root"),
    )
    monkeypatch.setattr(proofs, "ROWS", rows)
    assert proofs_of("cudnn-missing") == (
        "Named by check in the fault lab: a, b.",
        'Remedy "Install it": carried out, and the cause is gone: with stubs.',
        'Remedy "Reboot": not carried out: needs root (b).',
    )
    assert proofs_of("no-nvidia-driver") == (NOT_PROVEN,)


def test_every_cause_says_something() -> None:
    for cause in catalogue():
        assert proofs_of(cause.slug)
