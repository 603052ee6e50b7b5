"""The history as JSON; the schema is in whygpu/schemas."""

from __future__ import annotations

import json

from whygpu.model.codec import encode
from whygpu.model.history import History

HISTORY_SCHEMA = 1


def render(history: History) -> str:
    return json.dumps({"schema": HISTORY_SCHEMA, **encode(history)}, indent=2) + "\n"
