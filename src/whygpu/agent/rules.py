"""The tool `rule`: the page of one cause, or the causes whose pages have some words.

It reads nothing but whygpu's own pages, so it needs no process of its own.
"""

from __future__ import annotations

from typing import Any

from whygpu.agent.calls import ToolFailure
from whygpu.api import pages
from whygpu.errors import UsageError
from whygpu.model.cause import Cause
from whygpu.model.outside_text import excerpt

NAME = "rule"
TITLE = "What does this code mean?"
DESCRIPTION = (
    "Read the page of a cause, by its code (WG203) or its name: why it happens, what it looks "
    "like, how to fix it. Any other words, such as cudnn, list the causes whose pages have them."
)
MOST_CAUSES = 25
_LONGEST_NAME = 200

INPUT_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "a code, a name, or words"}},
    "required": ["name"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "causes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "cause": {"type": "string"},
                    "title": {"type": "string"},
                    "severity": {"enum": ["error", "warning", "info"]},
                    "page": {"type": ["string", "null"]},
                },
                "required": ["code", "cause", "title", "severity", "page"],
                "additionalProperties": False,
            },
        },
        "not_shown": {"type": "integer"},
    },
    "required": ["causes", "not_shown"],
    "additionalProperties": False,
}


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    if list(arguments) != ["name"] or not isinstance(arguments["name"], str):
        raise ToolFailure("rule takes one argument: name, a code such as WG203, a name, or words")
    try:
        found = pages.search(excerpt(arguments["name"], _LONGEST_NAME))
    except UsageError as error:
        raise ToolFailure(str(error)) from error
    rows = [_row(cause, with_page=len(found) == 1) for cause in found[:MOST_CAUSES]]
    return {"causes": rows, "not_shown": len(found) - len(rows)}


def _row(cause: Cause, *, with_page: bool) -> dict[str, object]:
    return {
        "code": cause.code,
        "cause": cause.slug,
        "title": cause.title,
        "severity": cause.severity,
        "page": cause.guide.strip() if with_page else None,
    }
