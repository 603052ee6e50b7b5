"""Ranges of versions as Poetry writes them, in pip's notation."""

from __future__ import annotations

import re
from typing import Any

from whygpu.model.whole_numbers import whole_number
from whygpu.readers.requirement_files.pip_requirement import normalised

_PART = re.compile(r"^(\^|~=|~|==|!=|<=|>=|<|>|=)?\s*v?(\d+(?:\.\d+)*)((?:\.\*)?|[\w.+-]*)")


def poetry_range(text: str) -> str | None:
    """The range in pip's notation; empty for any version, None if it was not understood."""
    if text.strip() in ("*", ""):
        return ""
    if "|" in text:
        return None
    parts = [_part(part.strip()) for part in re.split(r",|(?<=[\w*])\s+(?=[\^~<>=!])", text)]
    if any(part is None for part in parts):
        return None
    return ",".join(part for part in parts if part)


def _part(text: str) -> str | None:
    match = _PART.fullmatch(text)
    if match is None:
        return None
    operator, numbers, rest = match[1] or "", match[2], match[3]
    release = [number for part in numbers.split(".") if (number := whole_number(part)) is not None]
    if len(release) <= numbers.count("."):
        return None
    if operator == "^":
        # The first number that is not 0 must stay the same.
        kept = next((i for i, number in enumerate(release) if number), len(release) - 1)
        return f">={numbers}{rest},<{_next(release[: kept + 1])}"
    if operator == "~":
        return f">={numbers}{rest},<{_next(release[:2])}"
    if operator in ("", "="):
        operator = "=="
    return f"{operator}{numbers}{rest}"


def _next(release: list[int]) -> str:
    return ".".join(map(str, (*release[:-1], release[-1] + 1)))


def extras_of(table: dict[str, Any]) -> dict[str, str]:
    """The extra that each package belongs to; the first one if there are several."""
    found: dict[str, str] = {}
    for extra, names in table.items():
        for name in names if isinstance(names, list) else ():
            found.setdefault(normalised(str(name).partition(" ")[0].partition("[")[0]), extra)
    return found
