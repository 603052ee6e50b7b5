"""Comments that suppress findings: `# whygpu: ignore[WG704] the reason`."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.program import Place

_COMMENT = re.compile(
    r"(?:#|//)\s*whygpu:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[^\]]*)\])?[\s:,-]*(?P<reason>[^#\n]*)",
    re.IGNORECASE,
)


class Ignore(NamedTuple):
    codes: tuple[str, ...]
    """Empty: all of them."""
    reason: str

    def covers(self, code: str, cause: str) -> bool:
        return not self.codes or code in self.codes or cause.upper() in self.codes


class Ignores:
    """The comments of one file."""

    def __init__(self, text: str) -> None:
        self.lines: dict[int, Ignore] = {}
        self.file: list[Ignore] = []
        if "whygpu" not in text:
            return
        for number, line in enumerate(text.split("\n"), 1):
            found = _COMMENT.search(line)
            if found is None:
                continue
            words = (found["codes"] or "").upper().replace(",", " ").split()
            ignore = Ignore(tuple(words), found["reason"].strip())
            if found["file"]:
                self.file.append(ignore)
            else:
                self.lines[number] = ignore

    def reason(self, place: Place, code: str, cause: str) -> str | None:
        """Why a finding is suppressed; None if it is not, empty if no reason is given."""
        candidates = [self.lines.get(place.start[0]), self.lines.get(place.end[0]), *self.file]
        for ignore in candidates:
            if ignore is not None and ignore.covers(code, cause):
                return ignore.reason
        return None
