"""A comparison as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.comparison import ComparisonReport

COMPARE_SCHEMA = 1


def as_dict(report: ComparisonReport) -> dict[str, Any]:
    return {"schema": COMPARE_SCHEMA, **encode(report)}


def render(report: ComparisonReport) -> str:
    return json.dumps(as_dict(report), indent=2) + "\n"
