"""The answer of `whygpu diff` as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.differences import DiffAnswer, Reason

DIFF_SCHEMA = 1


def as_dict(answer: DiffAnswer) -> dict[str, Any]:
    explaining = answer.explaining
    return {
        "schema": DIFF_SCHEMA,
        "standing": answer.standing,
        "headline": answer.headline,
        "before": encode(answer.before),
        "after": encode(answer.after),
        "frameworks": encode(answer.frameworks),
        "reasons": [_reason(reason) for reason in answer.reasons],
        "differences": [
            {**encode(item), "explains": place in explaining}
            for place, item in enumerate(answer.differences)
        ],
        "notes": list(answer.notes),
        "trials": answer.trials,
    }


def _reason(reason: Reason) -> dict[str, Any]:
    finding = reason.finding
    return {
        "code": None if finding is None else finding.code,
        "cause": None if finding is None else finding.cause,
        "severity": None if finding is None else finding.severity,
        "message": "" if finding is None else finding.message,
        "subjects": list(reason.frameworks) if finding is None else [finding.subject],
        "present": reason.present,
        "sets": encode(reason.sets),
        "basis": reason.basis,
        "certainly_all": reason.certainly_all,
        "unexplained": reason.unexplained,
        "suspects": encode(reason.suspects),
    }


def render(answer: DiffAnswer) -> str:
    return json.dumps(as_dict(answer), indent=2) + "\n"
