"""Findings in source code for programs: JSON, SARIF, and annotations for GitHub."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from whygpu.model.cause import Cause
from whygpu.model.code_finding import FileProblem, LintReport, Located
from whygpu.render import sarif

LINT_SCHEMA = 1
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def as_dict(report: LintReport) -> dict[str, Any]:
    return {
        "schema": LINT_SCHEMA,
        "findings": [_finding(found) for found in report.findings],
        "ignored": [{**_finding(found), "reason": found.reason or ""} for found in report.ignored],
        "problems": [
            {**problem._asdict(), "path": _in_json(problem.path)} for problem in report.problems
        ],
        "files": report.files,
        "fixed": report.fixed,
        "fixes": [{**fix._asdict(), "path": _in_json(fix.path)} for fix in report.fixes],
        "left_out": report.left_out,
        "templates": report.templates,
    }


def _finding(found: Located) -> dict[str, Any]:
    finding = found.finding
    return {
        "code": finding.code,
        "cause": finding.cause,
        "path": _in_json(found.path),
        "line": found.line,
        "column": found.column,
        "message": finding.message,
        "fixable": found.fixable,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "fix": finding.remedies[0].text,
        "end_line": found.end_line,
        "end_column": found.end_column,
        "cell": found.cell,
    }


def _in_json(path: str) -> str:
    """JSON cannot hold bytes that are not UTF-8; the URI in SARIF can."""
    return os.fsencode(path).decode("utf-8", "replace")


def render_json(report: LintReport) -> str:
    return json.dumps(as_dict(report), indent=2) + "\n"


def render_sarif(report: LintReport, causes: Sequence[Cause], version: str) -> str:
    """SARIF 2.1.0. `version` is whygpu's."""
    results = [_result(found) for found in (*report.findings, *report.ignored)]
    return sarif.document(causes, version, results, map(_notification, report.problems))


def _result(found: Located) -> dict[str, Any]:
    finding = found.finding
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": sarif.LEVELS[finding.severity],
        "message": {"text": f"{_cell(found)}{finding.message}. {finding.remedies[0].text}"},
        "locations": [sarif.in_file(found.path, _region(found))],
    }
    if found.reason is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": found.reason}]
    return result


def _region(found: Located) -> dict[str, int]:
    """In a notebook, a line number counts within its cell, not within the file."""
    if found.cell is not None:
        return {"startLine": 1}
    return {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": found.end_line,
        "endColumn": found.end_column,
    }


def _cell(found: Located) -> str:
    return f"cell {found.cell}, line {found.line}: " if found.cell is not None else ""


def _notification(problem: FileProblem) -> dict[str, Any]:
    level = "error" if problem.kind == "crashed" else "warning"
    place = sarif.in_file(problem.path, {"startLine": problem.line})
    return sarif.notification(level, problem.message, place)


def render_github(report: LintReport) -> str:
    """Workflow commands, which GitHub shows beside the lines."""
    lines = []
    for found in report.findings:
        finding = found.finding
        place: dict[str, Any] = {
            "file": found.path,
            "line": found.line if found.cell is None else 1,
            "title": f"{finding.code} {finding.cause}",
        }
        if found.cell is None:
            place |= {"col": found.column, "endLine": found.end_line, "endColumn": found.end_column}
        message = f"{_cell(found)}{finding.message}. {finding.remedies[0].text}"
        lines.append(_command(_COMMANDS[finding.severity], place, message))
    for problem in report.problems:
        place = {"file": problem.path, "line": problem.line, "title": "whygpu lint"}
        lines.append(_command("warning", place, problem.message))
    return "".join(f"{line}\n" for line in lines)


def _command(name: str, place: dict[str, Any], message: str) -> str:
    properties = ",".join(
        f"{key}={_escaped(str(value), more=True)}" for key, value in place.items()
    )
    return f"::{name} {properties}::{_escaped(message)}"


def _escaped(text: str, *, more: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if more else text
