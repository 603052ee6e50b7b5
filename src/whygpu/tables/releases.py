"""Published releases of the frameworks, as read from their wheels by tools/harvest."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any, NamedTuple


class Release(NamedTuple):
    """One release of one package, for Linux on x86_64 unless `platforms` has only others."""

    package: str
    """The name on the package index, normalised: tensorflow, jax-cuda12-plugin, nvidia-cublas."""
    version: str
    file: str
    """The wheel that the row was read from; where its architectures come from, if not from it."""
    pythons: tuple[str, ...]
    """Python versions with a wheel, in order: 3.9, 3.10; empty where any Python 3 will do."""
    requires_python: str
    """Requires-Python as published; empty where the release does not say."""
    platforms: tuple[str, ...]
    """Platform tags of its wheels: manylinux_2_27_x86_64, win_amd64, macosx_12_0_arm64, any."""
    glibc: str
    """The oldest glibc that its Linux wheels for x86_64 run on; empty where it does not matter."""
    cuda: str
    """The CUDA release it was built for; empty for builds without CUDA."""
    cudnn: str
    architectures: tuple[str, ...]
    """GPU code in its binaries: sm_80, compute_90; empty where there is none or it is not known."""
    requires: tuple[str, ...]
    """Requires-Dist lines that matter to GPU use, extras and markers included."""
    unsearched: tuple[str, ...]
    """Libraries that its own extra installs and its RUNPATH does not search: a defect."""


DATA = os.path.join(os.path.dirname(__file__), "releases.json")


def releases() -> tuple[Release, ...]:
    """Every row, packages in alphabetical order, versions from old to new."""
    return tuple(row for package in _lines() for row in versions_of(package))


@cache
def versions_of(package: str) -> tuple[Release, ...]:
    """The rows of one package, from old to new; the others are not looked at."""
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
        Release._make(tuple(field) if isinstance(field, list) else field for field in row)
        for row in parsed
    )
