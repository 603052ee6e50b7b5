"""What ended many jobs, as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.fleet_logs import FleetLogs, LogCauseGroup, LogExample
from whygpu.render.check_json import finding_dict
from whygpu.render.explain_json import LOG_FINDING_FIELDS

FLEET_LOGS_SCHEMA = 1


def as_dict(report: FleetLogs) -> dict[str, Any]:
    data: dict[str, Any] = encode(report)
    causes = [_cause(group) for group in report.causes]
    return {"schema": FLEET_LOGS_SCHEMA, **data, "causes": causes}


def _cause(group: LogCauseGroup) -> dict[str, Any]:
    example = None if group.example is None else _example(group.example)
    return {**encode(group._replace(example=None)), "example": example}


def _example(example: LogExample) -> dict[str, Any]:
    return {
        "file": example.file,
        "finding": finding_dict(example.finding, LOG_FINDING_FIELDS, example.installer),
    }


def render(report: FleetLogs) -> str:
    return json.dumps(as_dict(report), indent=1) + "\n"
