"""The report for programs keeps its contract: names, types, schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.cases import each
from tests.kit import machine, machine_causes, machine_examples
from tests.schemas import SCHEMAS, obeys
from whygpu import diagnose
from whygpu.model.cause import Cause
from whygpu.model.codec import decode
from whygpu.model.snapshot import Snapshot
from whygpu.render.check_json import render, render_snapshot


def rendered(toml: str = "") -> dict[str, Any]:
    report: dict[str, Any] = json.loads(render(diagnose(machine(toml))))
    return report


@pytest.mark.slow
def test_the_schemas_are_schemas() -> None:
    for path in SCHEMAS:
        Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.slow
@each("cause", machine_causes(), ids=lambda cause: cause.slug)
def test_every_example_gives_a_valid_report(cause: Cause) -> None:
    for example in machine_examples(cause):
        obeys("check", rendered(example.text))


def test_the_report_says_what_was_examined() -> None:
    report = rendered()
    assert report["examined"].startswith("Python 3.")
    assert ", driver 5" in report["examined"]
    assert report["headline"]


def test_the_top_level_and_a_finding_have_just_the_promised_keys() -> None:
    report = rendered('only = ["torch"]\n[target.frameworks.torch.build]\nkind = "cpu"')
    assert list(report) == [
        "schema",
        "verdict",
        "headline",
        "examined",
        "frameworks",
        "root_causes",
        "findings",
        "outcomes",
        "undetermined",
        "snapshot",
    ]
    assert list(report["frameworks"][0]) == ["name", "version", "verdict", "because"]
    assert list(report["findings"][0]) == [
        "code",
        "cause",
        "severity",
        "subject",
        "message",
        "evidence",
        "remedies",
        "confidence",
        "explained_by",
    ]
    assert list(report["findings"][0]["evidence"][0]) == ["kind", "where", "text", "line"]
    assert list(report["findings"][0]["remedies"][0]) == ["text", "command"]


def test_what_is_undetermined_has_its_code_and_reason() -> None:
    report = rendered('[target.frameworks.torch.build]\nkind = {unknown = "permission denied"}')
    entry = next(item for item in report["undetermined"] if item["code"] == "WG301")
    assert "permission denied" in entry["reason"]


def test_outcomes_count_every_cause_once() -> None:
    assert sum(rendered()["outcomes"].values()) == len(machine_causes())


def test_the_snapshot_inside_is_the_snapshot() -> None:
    snapshot = machine()
    assert decode(Snapshot, rendered()["snapshot"]) == snapshot
    obeys("snapshot", json.loads(render_snapshot(snapshot)))
