"""Reports and snapshots as JSON; the schemas are in whygpu/schemas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import installer_of
from whygpu.model.finding import Finding, Remedy
from whygpu.model.report import STATUSES, Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Installer
from whygpu.render.examined import examined

REPORT_SCHEMA = 1
FINDING_FIELDS = (
    "code",
    "cause",
    "severity",
    "subject",
    "message",
    "evidence",
    "remedies",
    "confidence",
    "explained_by",
)


def as_dict(report: Report) -> dict[str, Any]:
    counts = Counter(outcome.status for outcome in report.outcomes)
    installer = installer_of(report.snapshot)
    return {
        "schema": REPORT_SCHEMA,
        "verdict": report.verdict,
        "headline": report.headline,
        "examined": examined(report.snapshot),
        "frameworks": framework_dicts(report),
        "root_causes": [
            finding_dict(finding, FINDING_FIELDS, installer) for finding in report.root_causes
        ],
        "findings": [
            finding_dict(finding, FINDING_FIELDS, installer) for finding in report.findings
        ],
        "outcomes": {status: counts[status] for status in STATUSES},
        "undetermined": [
            {"code": outcome.code, "reason": reason}
            for outcome in report.undetermined
            for reason in outcome.reasons
        ],
        "snapshot": encode(report.snapshot),
    }


def framework_dicts(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "version": item.version,
            "verdict": item.verdict,
            "because": list(item.because),
        }
        for item in report.frameworks
    ]


def finding_dict(finding: Finding, fields: Sequence[str], installer: Installer) -> dict[str, Any]:
    """The fields of a finding that are shown; a remedy's action is shown as its command."""
    encoded = encode(finding)
    encoded["remedies"] = remedy_dicts(finding.remedies, installer)
    return {name: encoded[name] for name in fields}


def remedy_dicts(remedies: Iterable[Remedy], installer: Installer) -> list[dict[str, Any]]:
    return [
        {"text": remedy_text(remedy, installer), "command": shell_text(remedy.action, installer)}
        for remedy in remedies
    ]


def render(report: Report) -> str:
    return json.dumps(as_dict(report), indent=2) + "\n"


def render_snapshot(snapshot: Snapshot) -> str:
    return json.dumps(encode(snapshot), indent=1) + "\n"
