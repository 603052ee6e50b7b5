"""Published releases of the frameworks, as read from their wheels by tools/harvest."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

from whygpu.model.release import Release

DATA = os.path.join(os.path.dirname(__file__), "releases.json")


def releases() -> tuple[Release, ...]:
    """Every row, packages in alphabetical order, versions from old to new."""
    return tuple(row for package in _lines() for row in versions_of(package))


@cache
def versions_of(package: str) -> tuple[Release, ...]:
    """The rows of one package, from old to new; other rows are not parsed."""
    lines = _lines().get(package, ())
    return _rows(json.loads(f"[{''.join(lines).rstrip(',')}]"))


@cache
def _lines() -> dict[str, list[str]]:
    """By package, the lines of the file that are its rows, each with its comma.

    Parsing the whole file would take longer than all the rest of a plan.
    """
    by_package: dict[str, list[str]] = {}
    with open(DATA, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line.startswith('["'):
                by_package.setdefault(line[2 : line.index('"', 2)], []).append(line)
    return by_package


def read(path: str) -> tuple[Release, ...]:
    """The rows of a file that tools/harvest wrote."""
    with open(path, encoding="utf-8") as file:
        return _rows(json.load(file)["releases"])


def _rows(parsed: list[list[Any]]) -> tuple[Release, ...]:
    return tuple(
        Release(*(tuple(field) if isinstance(field, list) else field for field in row))
        for row in parsed
    )
