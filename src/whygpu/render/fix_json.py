"""What `fix` found out and did, as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import installer_of
from whygpu.model.fix import FixAnswer, FixStep, Undone
from whygpu.model.report import Report
from whygpu.model.target import Installer
from whygpu.render.check_json import framework_dicts

FIX_SCHEMA = 1


def as_dict(answer: FixAnswer) -> dict[str, Any]:
    installer = installer_of(answer.before.snapshot)
    return {
        "schema": FIX_SCHEMA,
        "environment": answer.environment,
        "refused": answer.refused,
        "proven": answer.after is not None and bool(answer.steps),
        "applied": None if answer.applied is None else encode(answer.applied),
        "before": _state(answer.before),
        "after": None if answer.after is None else _state(answer.after),
        "steps": [_step(step, installer) for step in answer.steps],
        "by_hand": [_step(step, installer) for step in answer.by_hand],
        "attempts": [
            {
                "step": _step(attempt.step, installer),
                "result": attempt.result,
                "detail": attempt.detail,
                "seconds": round(attempt.seconds, 1),
                "download_bytes": attempt.download_bytes,
            }
            for attempt in answer.attempts
        ],
        "copy": None if answer.copy is None else encode(answer.copy),
    }


def _state(report: Report) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "headline": report.headline,
        "frameworks": framework_dicts(report),
        "root_causes": [
            {"code": f.code, "cause": f.cause, "subject": f.subject, "severity": f.severity}
            for f in report.root_causes
        ],
    }


def _step(step: FixStep, installer: Installer) -> dict[str, Any]:
    return {
        "code": step.code,
        "cause": step.cause,
        "subject": step.subject,
        "text": remedy_text(step.remedy, installer),
        "command": shell_text(step.remedy.action, installer),
        "by_hand": step.by_hand,
    }


def render(answer: FixAnswer) -> str:
    return json.dumps(as_dict(answer), indent=2) + "\n"


def render_undone(undone: Undone) -> str:
    return json.dumps({"schema": FIX_SCHEMA, **encode(undone)}, indent=2) + "\n"
