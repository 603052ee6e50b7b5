"""Published releases of the frameworks: the table whygpu ships, and a reader for such tables."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from typing import Any

from whygpu.model.release import Release

DATA = os.path.join(os.path.dirname(__file__), "releases.json")

_HEAD = re.compile(r'\{"schema": 1, "harvested": "(\d{4}-\d{2}-\d{2})", "releases": \[')
_TEXTS = frozenset(
    ("package", "version", "file", "requires_python", "glibc", "cuda", "cudnn", "unread")
)
_FEWEST = len(Release._fields) - len(Release._field_defaults)
_VERSION = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


class ReleaseTable:
    """One edition of the table. Raises ValueError if the text is not a release table."""

    def __init__(self, text: str) -> None:
        head, _, body = text.partition("\n")
        match = _HEAD.fullmatch(head)
        if match is None or not body.endswith("]}\n"):
            raise ValueError("it is incomplete, or is not a release table")
        self.date: str = match[1]
        """The day on which the package index was read, as in 2026-11-15."""
        self._lines: dict[str, list[str]] = {}
        self._rows: dict[str, tuple[Release, ...]] = {}
        for line in body.split("\n"):
            if line.startswith('["'):
                self._lines.setdefault(line[2 : line.index('"', 2)], []).append(line)

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def versions_of(self, package: str) -> tuple[Release, ...]:
        """The rows of one package, from old to new.

        Other rows are not parsed: parsing all would take longer than all the rest of a plan.
        """
        if package not in self._rows:
            lines = "".join(self._lines.get(package, ())).rstrip(",")
            self._rows[package] = tuple(map(_row, json.loads(f"[{lines}]")))
        return self._rows[package]

    def rows(self) -> tuple[Release, ...]:
        """Every row, packages in alphabetical order."""
        return tuple(row for package in self._lines for row in self.versions_of(package))


@cache
def shipped() -> ReleaseTable:
    """The table in the package, which tools/harvest read from the wheels."""
    return read(DATA)


def versions_of(package: str) -> tuple[Release, ...]:
    """The rows of one package in the shipped table, from old to new."""
    return shipped().versions_of(package)


def read(path: str) -> ReleaseTable:
    with open(path, encoding="utf-8") as file:
        return ReleaseTable(file.read())


def _row(fields: list[Any]) -> Release:
    """One row, with the types of its fields checked."""
    names = Release._fields
    if not isinstance(fields, list) or not _FEWEST <= len(fields) <= len(names):
        raise ValueError("a row has too many fields, or too few")
    for name, field in zip(names, fields, strict=False):
        is_right = (
            isinstance(field, str)
            if name in _TEXTS
            else isinstance(field, list) and all(isinstance(part, str) for part in field)
        )
        if not is_right:
            raise ValueError(f"{name} of {fields[:2]} is not as expected")
    values: Any = [tuple(field) if isinstance(field, list) else field for field in fields]
    row = Release(*values)
    if not _VERSION.fullmatch(row.version):
        raise ValueError(f"{row.version!r} of {row.package} is not the version of a release")
    return row
