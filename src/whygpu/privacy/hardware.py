"""Identifiers of hardware, which identify one machine. Addresses on its bus do not."""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late
from whygpu.privacy.rules import REMOVED, pattern_rule

_DIGIT = late(r"\d")
_LETTER = late(r"[A-Fa-f]")
_TELLING = 6
"""Fewer digits of a UUID than this do not identify a GPU (GPU-1a2b)."""
_WHOLE = 8
"""Shorter words and numbers of hexadecimal digits are not UUIDs (GPU-added, GPU-1080)."""


def _gpu(match: re.Match[str]) -> str:
    """GPU-8932f937, but not GPU-0, GPU-1080 and GPU-accelerated."""
    first = match["first"]
    is_mixed = _DIGIT.search(first) and _LETTER.search(first)
    if len(first) < _WHOLE and not is_mixed:
        return match[0]
    return f"{match['kind']}-{REMOVED}"


def _uuid(match: re.Match[str]) -> str:
    """A date and a time can also have dashes, but have no letters."""
    is_whole = match["rest"].count("-") == 3
    return "<uuid removed>" if is_whole or _LETTER.search(match[0]) else match[0]


HARDWARE = (
    pattern_rule(
        "gpu- mig-",
        rf"(?i)(?<![A-Za-z0-9])(?P<kind>GPU|MIG(?:-GPU)?)-(?P<first>[0-9a-f]{{{_TELLING},32}})"
        r"(?:-[0-9a-f]{1,12}){0,4}(?:/\d{1,3}){0,2}(?![0-9A-Za-z])",
        _gpu,
    ),
    pattern_rule(
        "-",
        r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?P<rest>-[0-9a-fA-F]{4}(?:-[0-9a-fA-F]{1,12}){1,3})"
        r"(?![0-9A-Za-z])",
        _uuid,
    ),
)
