"""SARIF of machines, logs and source: results, their rules, and what could not be told."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import whygpu
from tests.kit import machine
from tests.sarif import obeys_sarif
from whygpu import api
from whygpu.cli import main as cli
from whygpu.model.explanation import Explanation
from whygpu.render.finding_sarif import render_check, render_explanations
from whygpu.render.lint_json import render_sarif

ROOT = pathlib.Path(__file__).parent.parent.parent
HIDDEN = ROOT / "tests/logs/h200-torch-hidden.log"
NOT_GPU = ROOT / "tests/logs/h200-torch-not-gpu-shape.log"
BROKEN = ROOT / "docs/examples/tensorflow-2.21.json"


def of_machine(report: whygpu.Report) -> dict[str, Any]:
    causes = api.causes_of(report.findings)
    (run,) = json.loads(render_check(report, causes, "1"))["runs"]
    return dict(run)


def of_logs(*explanations: Explanation) -> dict[str, Any]:
    causes = api.causes_of(f for each in explanations for f in each.root_causes)
    (run,) = json.loads(render_explanations(explanations, causes, "1"))["runs"]
    return dict(run)


def notes(run: dict[str, Any]) -> list[tuple[str, str]]:
    (invocation,) = run["invocations"]
    noted = invocation["toolExecutionNotifications"]
    return [(note["level"], note["message"]["text"]) for note in noted]


def test_a_machine() -> None:
    report = whygpu.diagnose(whygpu.load_snapshot(str(BROKEN)))
    run = of_machine(report)
    assert [result["ruleId"] for result in run["results"]] == [f.code for f in report.findings]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    first = run["results"][0]
    assert first["level"] == "error"
    assert first["locations"] == [{"logicalLocations": [{"name": "tensorflow"}]}]
    assert "libcusolver.so.11" in first["message"]["text"]
    assert "\n    " in first["message"]["text"], "the command of the remedy"
    assert any("libcusolver" in line for line in first["properties"]["evidence"])
    assert run["properties"]["verdict"] == "cpu"
    assert run["properties"]["headline"] == report.headline


def test_a_machine_about_which_nothing_can_be_told_is_not_clean() -> None:
    run = of_machine(whygpu.diagnose(machine("nothing_seen = true")))
    assert run["results"] == []
    assert notes(run)[0][0] == "warning"
    assert any("is undetermined: " in text for _, text in notes(run))


def test_several_logs_are_one_document() -> None:
    found, other = whygpu.explain(HIDDEN), whygpu.explain(NOT_GPU)
    run = of_logs(found, other)
    assert [result["ruleId"] for result in run["results"]] == [f.code for f in found.root_causes]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/tests/logs/h200-torch-hidden.log")
    assert place["region"] == {"startLine": 7}
    assert notes(run) == [("warning", other.headline)]


def test_a_log_without_a_name_and_one_that_nobody_understands() -> None:
    run = of_logs(whygpu.explain("RuntimeError: No CUDA GPUs are available\n"))
    assert run["results"][0]["locations"] == [{"logicalLocations": [{"name": "standard input"}]}]
    unknown = whygpu.explain("RuntimeError: CUDA error: some new thing\nAborted\n")
    assert unknown.verdict == "unknown"
    assert ("warning", unknown.headline) in notes(of_logs(unknown))


def test_the_command_line_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--sarif", "--snapshot", str(BROKEN)]) == 1
    assert json.loads(capsys.readouterr().out)["version"] == "2.1.0"
    assert cli.main(["explain", "--sarif", str(HIDDEN), str(NOT_GPU)]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["results"]
    with pytest.raises(SystemExit):
        cli.main(["check", "--sarif", "--json"])
    assert "not allowed with" in capsys.readouterr().err


def test_documents_obey_the_published_schema() -> None:
    report = whygpu.diagnose(whygpu.load_snapshot(str(BROKEN)))
    unknown = whygpu.diagnose(machine("nothing_seen = true"))
    logs = (whygpu.explain(HIDDEN), whygpu.explain(NOT_GPU), whygpu.explain("CUDA error\n"))
    findings = [finding for each in logs for finding in each.root_causes]
    linted = whygpu.lint([str(ROOT / "docs/examples")])
    for text in (
        render_check(report, api.causes_of(report.findings), "1"),
        render_check(unknown, (), "1"),
        render_explanations(logs, api.causes_of(findings), "1"),
        render_sarif(linted, api.lint_causes(), "1"),
    ):
        obeys_sarif(json.loads(text))
