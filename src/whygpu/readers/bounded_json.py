"""Reads untrusted JSON with limits: a small text can describe a huge or very deep value."""

from __future__ import annotations

import codecs
import json
from typing import Any

from whygpu.readers import limits

_STRUCTURE = (b"[", b"{", b",")
"""Each value except the first follows one of these."""


def loads(content: bytes) -> Any:
    """The value; raises ValueError if it is invalid, too large or nested too deeply."""
    if sum(map(content.count, _STRUCTURE)) > limits.JSON_VALUES:
        raise ValueError(f"it has more than {limits.JSON_VALUES:,} values")
    try:
        # Use the byte order mark if there is one: a Windows shell writes UTF-16.
        return json.loads(content.removeprefix(codecs.BOM_UTF8))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
