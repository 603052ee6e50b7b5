"""What of a requirements file cannot use the GPU, as JSON."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.requirement_file import FileAnswer, FileLine, RequirementVerdict
from whygpu.render.plan_json import table_dict

PLAN_FROM_SCHEMA = 1


def as_dict(answer: FileAnswer) -> dict[str, Any]:
    return {
        "schema": PLAN_FROM_SCHEMA,
        "table": table_dict(answer.table),
        "machine": encode(answer.machine),
        "file": answer.file.path,
        "format": answer.file.format,
        "requirements": [_requirement(verdict) for verdict in answer.verdicts],
        "unread": [{**_place(line.place), "reason": line.reason} for line in answer.file.unread],
        "unchecked": list(answer.unchecked),
    }


def _place(place: FileLine) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "text": place.text}


def _requirement(verdict: RequirementVerdict) -> dict[str, Any]:
    requirement = verdict.requirement
    return {
        **_place(requirement.place),
        "name": requirement.name,
        "group": requirement.group or None,
        "ability": verdict.ability,
        "kind": verdict.kind,
        "reason": verdict.reason,
        "is_alternative": verdict.is_alternative,
        "edits": [
            {"file": edit.place.file, "line": edit.place.line, "replacement": edit.replacement}
            for edit in verdict.edits
        ],
        "advice": verdict.advice or None,
    }


def render(answer: FileAnswer) -> str:
    return json.dumps(as_dict(answer), indent=2) + "\n"
