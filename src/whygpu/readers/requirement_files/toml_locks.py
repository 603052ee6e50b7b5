"""Reads uv.lock, poetry.lock and pdm.lock, which are lists of packages in TOML."""

from __future__ import annotations

import os
from typing import Any

from whygpu.errors import UsageError
from whygpu.model.requirement_file import (
    FileLine,
    PackageSource,
    PinnedRequirement,
    RequirementsFile,
    UnreadLine,
)
from whygpu.readers.requirement_files import Load
from whygpu.readers.requirement_files.pip_requirement import normalised
from whygpu.readers.requirement_files.poetry_versions import extras_of, poetry_range
from whygpu.readers.requirement_files.pyproject import read as read_pyproject
from whygpu.readers.requirement_files.toml_lines import TomlFile
from whygpu.readers.requirement_files.uv_parts import (
    Edge,
    conditions,
    conditions_of,
    conflicting_parts,
    is_project,
    optional_parts,
)

_DEFAULT_INDEXES = ("https://pypi.org/simple", "https://pypi.org/simple/")
_UV_VERSION = 1


def read_uv(path: str, load: Load) -> RequirementsFile:
    file = TomlFile(path, load(path))
    if file.data.get("version") != _UV_VERSION:
        version = file.data.get("version")
        raise UsageError(f"{path}: whygpu reads version {_UV_VERSION} of uv.lock, not {version}")
    packages = _packages(file)
    parts, reached = optional_parts(packages), conditions(packages)
    exclusive = conflicting_parts(packages) if file.data.get("conflicts") else {}
    found = [
        requirement._replace(
            group=exclusive.get(number, parts.get(requirement.name, "")),
            marker=_both(requirement.marker, reached.get(requirement.name, "")),
        )
        for number, package in enumerate(packages)
        for requirement in _of_uv(package, file.of_key(f"package#{number}", "name"))
    ]
    python = file.data.get("requires-python", "")
    return RequirementsFile(
        path,
        "uv.lock",
        tuple(found),
        requires_python=python if isinstance(python, str) else "",
    )


def _both(one: str, other: str) -> str:
    return f"({one}) and ({other})" if one and other else one or other


def _of_uv(package: dict[str, Any], place: FileLine) -> list[PinnedRequirement]:
    origin = package.get("source")
    origin = origin if isinstance(origin, dict) else {}
    if is_project(package) or "version" not in package:
        # The project itself: what it requires has entries of its own.
        return []
    registry = str(origin.get("registry", ""))
    other = next((str(origin[key]) for key in ("url", "git", "path") if key in origin), "")
    markers = [text for text in package.get("resolution-markers", ()) if isinstance(text, str)]
    return [
        PinnedRequirement(
            name=normalised(str(package.get("name", ""))),
            extras=(),
            specifier=f"=={package['version']}",
            marker=" or ".join(f"({text})" for text in markers),
            place=place,
            sources=_sources(registry, place),
            url=other,
        )
    ]


def _sources(url: str, place: FileLine) -> tuple[PackageSource, ...]:
    if not url or url in _DEFAULT_INDEXES:
        return ()
    return (PackageSource(url, "explicit", place),)


def read_poetry(path: str, load: Load) -> RequirementsFile:
    file = TomlFile(path, load(path))
    metadata = file.table("metadata")
    if "lock-version" not in metadata:
        raise UsageError(f"{path}: it is not a lock file of Poetry, or one of before 2020")
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    extras = extras_of(file.table("extras"))
    packages = _packages(file)
    reached = conditions_of(_poetry_edges(packages, _wanted_by_project(path, load)))
    for number, package in enumerate(packages):
        place = file.of_key(f"package#{number}", "name")
        found = _of_poetry(package, place, extras)
        if isinstance(found, UnreadLine):
            unread.append(found)
        else:
            marker = found.marker or reached.get(found.name, "")
            requirements.append(found._replace(marker=marker))
    python = metadata.get("python-versions", "")
    return RequirementsFile(
        path,
        "poetry.lock",
        tuple(requirements),
        requires_python=(poetry_range(python) or "") if isinstance(python, str) else "",
        unread=tuple(unread),
    )


def _wanted_by_project(path: str, load: Load) -> set[str] | None:
    """What the project itself requires; None if that is not known."""
    try:
        file = read_pyproject(os.path.join(os.path.dirname(path), "pyproject.toml"), load)
    except (UsageError, OSError):
        return None
    return {requirement.name for requirement in file.requirements}


def _poetry_edges(packages: list[dict[str, Any]], wanted: set[str] | None) -> dict[str, list[Edge]]:
    """What each package requires, and under which condition; Poetry 2 writes that to the packages.

    What nothing else requires, the project does.
    """
    required: dict[str, list[Edge]] = {}
    for package in packages:
        own = normalised(str(package.get("name", "")))
        listed = package.get("dependencies")
        for name, entry in listed.items() if isinstance(listed, dict) else ():
            for each in entry if isinstance(entry, list) else [entry]:
                marker = each.get("markers", "") if isinstance(each, dict) else ""
                required.setdefault(own, []).append(Edge(normalised(name), str(marker)))
    by_others = {edge.name for edges in required.values() for edge in edges}
    names = {normalised(str(package.get("name", ""))) for package in packages}
    roots = names if wanted is None else (names - by_others) | wanted
    required[""] = [Edge(name, "") for name in sorted(roots)]
    return required


def read_pdm(path: str, load: Load) -> RequirementsFile:
    file = TomlFile(path, load(path))
    if "lock_version" not in file.table("metadata"):
        raise UsageError(f"{path}: it is not a lock file of PDM, or one of before 2021")
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    for number, package in enumerate(_packages(file)):
        place = file.of_key(f"package#{number}", "name")
        if not isinstance(package.get("version"), str):
            unread.append(UnreadLine(place, "it has no version"))
        elif "extras" not in package:
            # An entry with extras repeats the package, and lists what they need.
            requirements.append(_of_pdm(package, place))
    return RequirementsFile(path, "pdm.lock", tuple(requirements), unread=tuple(unread))


def _of_pdm(package: dict[str, Any], place: FileLine) -> PinnedRequirement:
    groups = package.get("groups", [])
    is_always = not isinstance(groups, list) or not groups or "default" in groups
    marker = package.get("marker", "")
    return PinnedRequirement(
        name=normalised(str(package.get("name", ""))),
        extras=(),
        specifier=f"=={package['version']}",
        marker=marker if isinstance(marker, str) else "",
        place=place,
        url=next((str(package[key]) for key in ("url", "git", "path") if key in package), ""),
        group="" if is_always else f"group {groups[0]}",
    )


def _poetry_part(package: dict[str, Any], extras: dict[str, str]) -> str:
    """The part of the project that installs a package; empty if it is always installed."""
    extra = extras.get(normalised(str(package.get("name", ""))))
    if package.get("optional") is True:
        return f"extra {extra}" if extra else "optional"
    groups = package.get("groups", [])
    if not isinstance(groups, list) or not groups or "main" in groups:
        return ""
    return f"group {groups[0]}"


def _of_poetry(
    package: dict[str, Any], place: FileLine, extras: dict[str, str]
) -> PinnedRequirement | UnreadLine:
    if not isinstance(package.get("version"), str):
        return UnreadLine(place, "it has no version")
    origin = package.get("source")
    origin = origin if isinstance(origin, dict) else {}
    kind, url = origin.get("type", ""), str(origin.get("url", ""))
    marker = package.get("markers", "")
    if isinstance(marker, dict):
        # By groups: it is installed if one of them is.
        texts = [text for text in marker.values() if isinstance(text, str)]
        marker = " or ".join(f"({text})" for text in texts)
    return PinnedRequirement(
        name=normalised(str(package.get("name", ""))),
        extras=(),
        specifier=f"=={package['version']}",
        marker=marker if isinstance(marker, str) else "",
        place=place,
        sources=_sources(url, place) if kind == "legacy" else (),
        url="" if kind in ("", "legacy") else url,
        group=_poetry_part(package, extras),
    )


def _packages(file: TomlFile) -> list[dict[str, Any]]:
    packages = file.data.get("package", [])
    return [item for item in packages if isinstance(item, dict)] if packages else []
