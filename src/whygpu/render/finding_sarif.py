"""Reports of machines and explanations of logs as SARIF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from whygpu.model.cause import Cause
from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import installer_of
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Finding
from whygpu.model.report import Report
from whygpu.model.target import Installer
from whygpu.render import sarif
from whygpu.render.examined import examined


def render_check(report: Report, causes: Sequence[Cause], version: str) -> str:
    """A result for each finding. A machine has no lines, so its place is what it is about."""
    installer = installer_of(report.snapshot)
    results = [
        _result(finding, installer, {"logicalLocations": [{"name": finding.subject}]})
        for finding in report.findings
    ]
    unknown = [sarif.notification("warning", report.headline)]
    notes = [
        *(unknown if report.standing == "unknown" else ()),
        *(
            sarif.notification(
                "error" if outcome.status == "crashed" else "note",
                f"{outcome.code} {outcome.cause} is undetermined: {reason}",
            )
            for outcome in report.undetermined
            for reason in outcome.reasons
        ),
    ]
    return sarif.document(
        causes,
        version,
        results,
        notes,
        verdict=report.verdict,
        headline=report.headline,
        examined=examined(report.snapshot),
    )


def render_explanations(
    explanations: Sequence[Explanation], causes: Sequence[Cause], version: str
) -> str:
    """One document for several logs: a result for each root cause, at the line that shows it."""
    results = [
        _result(finding, explanation.installer, _place(explanation, finding.evidence))
        for explanation in explanations
        for finding in explanation.root_causes
    ]
    notes = [note for explanation in explanations for note in _notes(explanation)]
    return sarif.document(causes, version, results, notes)


def _notes(explanation: Explanation) -> Iterator[dict[str, Any]]:
    """What is no cause: without it, an answer "cannot tell" would look like a clean one."""
    for crash in explanation.crashed:
        yield sarif.notification("error", crash)
    if explanation.verdict in ("unknown", "not-gpu"):
        place = _place(explanation, explanation.unexplained)
        yield sarif.notification("warning", explanation.headline, place)
    if explanation.unread:
        yield sarif.notification("warning", explanation.unread)


def _place(explanation: Explanation, evidence: Sequence[Any]) -> dict[str, Any]:
    """The first line of the log that is evidence."""
    if not explanation.name:
        return {"logicalLocations": [{"name": "standard input"}]}
    line = next((each.line for each in evidence if each.line is not None), 1)
    return sarif.in_file(explanation.name, {"startLine": line})


def _result(finding: Finding, installer: Installer, place: dict[str, Any]) -> dict[str, Any]:
    return {
        "ruleId": finding.code,
        "level": sarif.LEVELS[finding.severity],
        "message": {"text": _text(finding, installer)},
        "locations": [place],
        "properties": {
            "confidence": finding.confidence,
            "explainedBy": finding.explained_by,
            "evidence": [f"{each.where}: {each.text}" for each in finding.evidence],
        },
    }


def _text(finding: Finding, installer: Installer) -> str:
    """What is wrong, and what to do about it."""
    lines = [f"{finding.message}."]
    for remedy in finding.remedies:
        lines.append(remedy_text(remedy, installer))
        command = shell_text(remedy.action, installer)
        if command:
            lines.append(f"    {command}")
    return "\n".join(lines)
