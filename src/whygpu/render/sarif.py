"""SARIF 2.1.0, as editors and code scanning read it: what the documents of all verbs share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whygpu.model.cause import Cause

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def document(
    causes: Sequence[Cause],
    version: str,
    results: Iterable[Mapping[str, Any]],
    notifications: Iterable[Mapping[str, Any]],
    **properties: Any,
) -> str:
    """One run of whygpu. `causes` are those that results refer to; `version` is whygpu's.

    A notification of level error says that whygpu itself has failed.
    """
    noted = list(notifications)
    places = {cause.code: place for place, cause in enumerate(causes)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {"name": "whygpu", "version": version, "rules": [_rule(c) for c in causes]}
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": all(each["level"] != "error" for each in noted),
                "toolExecutionNotifications": noted,
            }
        ],
        "results": [{**each, "ruleIndex": places[each["ruleId"]]} for each in results],
    }
    if properties:
        run["properties"] = properties
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.code,
        "name": cause.slug,
        "shortDescription": {"text": f"{cause.title}."},
        "fullDescription": {"text": f"{cause.title}."},
        "help": {"text": cause.guide.strip(), "markdown": cause.guide.strip()},
        "defaultConfiguration": {"level": LEVELS[cause.severity]},
    }


def notification(level: str, text: str, *locations: Mapping[str, Any]) -> dict[str, Any]:
    noted: dict[str, Any] = {"level": level, "message": {"text": text}}
    return {**noted, "locations": list(locations)} if locations else noted


def in_file(path: str, region: Mapping[str, int]) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": dict(region)}}


def _uri(path: str) -> str:
    """Byte by byte, because a file name may not be UTF-8."""
    from urllib.parse import quote

    raw = os.fsencode(path.replace("\\", "/") if os.sep == "\\" else path)
    return f"file://{quote(raw)}" if os.path.isabs(path) else quote(raw)
