"""What must hold in a release table: for the shipped one, and before an updated one is saved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from whygpu.model.release import Release
from whygpu.tables.architectures import parse_code

_NUMBERS = re.compile(r"(\d+(\.\d+)*)?")
_GLIBC = re.compile(r"(2\.\d+)?")
_PYTHON = re.compile(r"[23]\.\d+")
_TAG = re.compile(r"[a-z0-9_]{1,60}")
_LOST_PART = 0.2
_LOST_FEW = 2
"""Releases of a package that an index may have lost. Projects withdraw a release now and then."""


def problems(rows: Sequence[Release]) -> Iterator[str]:
    """What is wrong with the rows, one text for each row; nothing if they are sound."""
    for row in rows:
        try:
            wrong = _problem(row)
        except (InvalidVersion, InvalidSpecifier, InvalidWheelFilename) as error:
            wrong = str(error)
        except (InvalidRequirement, RecursionError):
            wrong = "a requirement cannot be parsed"
        if wrong:
            yield f"{row.package} {row.version}: {wrong}"
            return
    for before, after in pairwise(rows):
        if (before.package, Version(before.version)) >= (after.package, Version(after.version)):
            yield f"{after.package} {after.version}: it is out of order, or there twice"


def lost(before: Iterable[Release], after: Iterable[Release]) -> Iterator[str]:
    """Packages that have far fewer releases than before: an index that is broken or incomplete."""
    now = {(row.package, row.version) for row in after}
    known: dict[str, list[str]] = {}
    for row in before:
        known.setdefault(row.package, []).append(row.version)
    for package, versions in known.items():
        gone = [version for version in versions if (package, version) not in now]
        if len(gone) == len(versions) or len(gone) > max(_LOST_FEW, _LOST_PART * len(versions)):
            yield f"{package}: {len(gone)} of its {len(versions)} known releases are missing"


def _problem(row: Release) -> str:
    version = Version(row.version)
    if version.is_prerelease or version.local is not None:
        return "it is not a final release"
    if row.package != canonicalize_name(row.package):
        return "its name is not normalised"
    filename, *sources = row.file.split("; architectures from ")
    name, of_file, _, tags = parse_wheel_filename(filename)
    if (name, of_file) != (row.package, version):
        return f"{filename} is the wheel of another release"
    if not {tag.platform for tag in tags} <= set(row.platforms):
        return f"{filename} is for a platform that the row does not have"
    if not all(url.startswith("https://") for url in sources):
        return "the source of its architectures is not a web page"
    return _field_problem(row)


def _field_problem(row: Release) -> str:
    if not all(_TAG.fullmatch(tag) for tag in row.platforms):
        return "a platform tag is not well formed"
    for pythons in (row.pythons, row.free_threaded):
        if not all(_PYTHON.fullmatch(python) for python in pythons):
            return "a Python version is not well formed"
        if list(pythons) != sorted(pythons, key=Version):
            return "its Python versions are not in order"
    SpecifierSet(row.requires_python)
    if not _GLIBC.fullmatch(row.glibc):
        return "its glibc is not a version"
    if not (_NUMBERS.fullmatch(row.cuda) and _NUMBERS.fullmatch(row.cudnn)):
        return "its CUDA or cuDNN is not a version"
    if not all(map(parse_code, row.architectures)):
        return "an architecture is not well formed"
    if (row.architectures and not row.cuda) or (row.unread and row.cuda):
        return "its CUDA release and the rest of its build do not agree"
    if not all(str(Requirement(line)) == line for line in row.requires):
        return "a requirement is not normalised"
    return ""
