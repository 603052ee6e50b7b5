"""The report for programs keeps its contract: names, types, schema."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import jsonschema
import pytest

import whygpu
from tests.kit import examples, judged_on_machines, machine
from whygpu import diagnose
from whygpu.causes import catalogue
from whygpu.model.cause import Cause
from whygpu.model.codec import decode
from whygpu.model.snapshot import Snapshot
from whygpu.render.json import render, render_snapshot

SCHEMAS = pathlib.Path(whygpu.__path__[0]) / "schemas"
CHECK = json.loads((SCHEMAS / "check.schema.json").read_text())
SNAPSHOT = json.loads((SCHEMAS / "snapshot.schema.json").read_text())


def rendered(toml: str = "") -> dict[str, Any]:
    report: dict[str, Any] = json.loads(render(diagnose(machine(toml))))
    return report


def test_the_schemas_are_schemas() -> None:
    jsonschema.Draft202012Validator.check_schema(CHECK)
    jsonschema.Draft202012Validator.check_schema(SNAPSHOT)


@pytest.mark.parametrize("cause", catalogue(), ids=lambda cause: cause.slug)
def test_every_example_gives_a_valid_report(cause: Cause) -> None:
    validator = jsonschema.Draft202012Validator(CHECK)
    for example in examples(cause.page):
        if example.kind == "machine":
            validator.validate(rendered(example.text))


def test_the_top_level_and_a_finding_have_just_the_promised_keys() -> None:
    report = rendered('only = ["torch"]\n[target.frameworks.torch.build]\nkind = "cpu"')
    assert list(report) == [
        "schema",
        "verdict",
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
    assert list(report["findings"][0]["evidence"][0]) == ["kind", "where", "text"]
    assert list(report["findings"][0]["remedies"][0]) == ["text", "command"]


def test_what_is_undetermined_has_its_code_and_reason() -> None:
    report = rendered('[target.frameworks.torch.build]\nkind = {unknown = "permission denied"}')
    entry = next(item for item in report["undetermined"] if item["code"] == "WG301")
    assert "permission denied" in entry["reason"]


def test_outcomes_count_every_cause_once() -> None:
    assert sum(rendered()["outcomes"].values()) == len(judged_on_machines())


def test_the_snapshot_inside_is_the_snapshot() -> None:
    snapshot = machine()
    assert decode(Snapshot, rendered()["snapshot"]) == snapshot
    jsonschema.Draft202012Validator(SNAPSHOT).validate(json.loads(render_snapshot(snapshot)))
