"""The report on many machines as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.fleet import CauseGroup, Example, FleetReport
from whygpu.render.check_json import FINDING_FIELDS, finding_dict

FLEET_SCHEMA = 1


def as_dict(report: FleetReport) -> dict[str, Any]:
    data: dict[str, Any] = encode(report)
    return {
        "schema": FLEET_SCHEMA,
        **data,
        "causes": [_cause(group) for group in report.causes],
    }


def _cause(group: CauseGroup) -> dict[str, Any]:
    example = None if group.example is None else _example(group.example)
    return {**encode(group._replace(example=None)), "example": example}


def _example(example: Example) -> dict[str, Any]:
    return {
        "node": example.node,
        "finding": finding_dict(example.finding, FINDING_FIELDS, example.installer),
    }


def render(report: FleetReport) -> str:
    return json.dumps(as_dict(report), indent=1) + "\n"
