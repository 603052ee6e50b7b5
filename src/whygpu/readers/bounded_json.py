"""JSON that somebody else has written: small text can describe a huge, or endlessly deep, value."""

from __future__ import annotations

import codecs
import json
from typing import Any

from whygpu.readers import limits

_STRUCTURE = (b"[", b"{", b",")
"""Each value but the first comes behind one of these."""


def loads(content: bytes) -> Any:
    """The value; ValueError where it is none, or too large, or nests too deeply."""
    if sum(map(content.count, _STRUCTURE)) > limits.JSON_VALUES:
        raise ValueError(f"it has more than {limits.JSON_VALUES:,} values")
    try:
        # By its byte order mark where it has one: a Windows shell writes UTF-16.
        return json.loads(content.removeprefix(codecs.BOM_UTF8))
    except RecursionError:
        raise ValueError("it nests too deeply") from None
