"""Explanations as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Finding
from whygpu.render.check_json import FINDING_FIELDS, finding_dict, remedy_dicts

EXPLANATION_SCHEMA = 1
LOG_FINDING_FIELDS = (*FINDING_FIELDS, "ask")


def as_dict(explanation: Explanation) -> dict[str, Any]:
    def shown(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
        return [finding_dict(item, LOG_FINDING_FIELDS, explanation.installer) for item in findings]

    return {
        "schema": EXPLANATION_SCHEMA,
        "name": explanation.name,
        "verdict": explanation.verdict,
        "headline": explanation.headline,
        "root_causes": shown(explanation.root_causes),
        "symptoms": shown(explanation.symptoms),
        "noise": shown(explanation.noise),
        "unexplained": [encode(evidence) for evidence in explanation.unexplained],
        "crashed": list(explanation.crashed),
        "lines_read": explanation.lines_read,
        "guidance": _guidance(explanation),
        "unread": explanation.unread,
    }


def _guidance(explanation: Explanation) -> dict[str, Any] | None:
    if explanation.guidance is None:
        return None
    steps = remedy_dicts(explanation.guidance.steps, explanation.installer)
    return {**encode(explanation.guidance), "steps": steps}


def render(explanation: Explanation) -> str:
    return json.dumps(as_dict(explanation), indent=2) + "\n"


def render_line(explanation: Explanation) -> str:
    """On one line, for several in a row."""
    return json.dumps(as_dict(explanation)) + "\n"
