"""Python releases and the end of their support."""

from __future__ import annotations

from typing import NamedTuple

_STATUS = "https://devguide.python.org/versions/"


class PythonRelease(NamedTuple):
    version: str
    end_of_life: str
    """The month of the last security fixes: 2025-10."""
    source: str


RELEASES: tuple[PythonRelease, ...] = (
    PythonRelease("2.7", "2020-01", _STATUS),
    PythonRelease("3.3", "2017-09", _STATUS),
    PythonRelease("3.4", "2019-03", _STATUS),
    PythonRelease("3.5", "2020-09", _STATUS),
    PythonRelease("3.6", "2021-12", _STATUS),
    PythonRelease("3.7", "2023-06", _STATUS),
    PythonRelease("3.8", "2024-10", _STATUS),
    PythonRelease("3.9", "2025-10", _STATUS),
    PythonRelease("3.10", "2026-10", _STATUS),
    PythonRelease("3.11", "2027-10", _STATUS),
    PythonRelease("3.12", "2028-10", _STATUS),
    PythonRelease("3.13", "2029-10", _STATUS),
    PythonRelease("3.14", "2030-10", _STATUS),
    PythonRelease("3.15", "2031-10", _STATUS),
)

OLD_PIP_UP_TO = (3, 6)
"""Environments of these get pip 18 or older, which knows no wheel newer than manylinux1. pip 20.3
knows them all and is the last for Python 2.7 and 3.5 (https://pip.pypa.io/en/stable/news/)."""

UV_SINCE = (3, 6)
"""uv does not work with older ones (https://docs.astral.sh/uv/reference/policies/python)."""

_BY_VERSION = {row.version: row for row in RELEASES}


def python_release(version: str) -> PythonRelease | None:
    """The row of a version (3.11, 3.11.9); None if it is not on record."""
    return _BY_VERSION.get(".".join(version.split(".")[:2]))
