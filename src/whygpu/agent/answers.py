"""Cuts the JSON of a verb to what an agent needs: an agent pays for every word that it reads.

What is left keeps the names and types of the verb's own schema in `whygpu/schemas`, and the schema
of a tool's answer is cut from that file. `not_shown` counts what was left out of long lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

MOST_EVIDENCE = 6
"""For one finding, as in the text of `check`."""

_NOT_SHOWN = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "how many entries were left out of long lists",
}


class Shape(NamedTuple):
    """Which fields of a verb's JSON are kept."""

    schema: str
    """The name of the schema that the verb's JSON obeys."""
    fields: tuple[str, ...]
    most: Mapping[str, int] = {}
    """The most entries to keep of a list."""

    def cut(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: answer[name] for name in self.fields}
        not_shown: dict[str, int] = {}
        for name, most in self.most.items():
            if len(kept[name]) > most:
                not_shown[name] = len(kept[name]) - most
                kept[name] = kept[name][:most]
        for finding in _with_evidence(kept):
            more = len(finding["evidence"]) - MOST_EVIDENCE
            if more > 0:
                finding["evidence"] = finding["evidence"][:MOST_EVIDENCE]
                not_shown["evidence"] = not_shown.get("evidence", 0) + more
        return {**kept, "not_shown": not_shown}

    def json_schema(self) -> dict[str, Any]:
        """The part of the verb's schema for these fields."""
        whole = _shipped(self.schema)
        properties = {name: whole["properties"][name] for name in self.fields}
        definitions = whole.get("$defs", {})
        used = _used(properties, definitions)
        return {
            "type": "object",
            "properties": {**properties, "not_shown": _NOT_SHOWN},
            "required": [*self.fields, "not_shown"],
            "additionalProperties": False,
            "$defs": {name: definitions[name] for name in definitions if name in used},
        }


def _with_evidence(kept: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for value in kept.values():
        if isinstance(value, list):
            yield from (item for item in value if isinstance(item, dict) and "evidence" in item)


def _shipped(name: str) -> dict[str, Any]:
    text = files("whygpu").joinpath("schemas", f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _used(part: Any, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that a part of a schema refers to, also through others."""
    used: set[str] = set()
    parts = [part]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix("#/$defs/")
            if name and name not in used:
                used.add(name)
                parts.append(definitions[name])
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return used
