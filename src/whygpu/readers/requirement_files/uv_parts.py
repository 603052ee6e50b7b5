"""Which packages of a uv.lock only an extra or a dependency group of the project installs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.markers import InvalidMarker, Marker

from whygpu.readers.requirement_files.pip_requirement import normalised

Package = dict[str, Any]


def optional_parts(packages: Sequence[Package]) -> dict[str, str]:
    """The part, such as "extra gpu", of each package that the project does not always install.

    A package that several parts install has the first one. If the file does not show the project,
    every package counts as always installed.
    """
    by_name: dict[str, list[Package]] = {}
    for package in packages:
        by_name.setdefault(normalised(str(package.get("name", ""))), []).append(package)
    projects = [package for package in packages if is_project(package)]
    if not projects:
        return {}
    always = _reached([name for project in projects for name in _required(project)], by_name)
    parts: dict[str, str] = {}
    for project in projects:
        for part, names in _parts(project):
            for name in _reached(names, by_name) - always:
                parts.setdefault(name, part)
    return parts


_AND_EXTRA = re.compile(r" and extra == [\"'][^\"']{1,100}[\"']")
_MOST_WAYS = 16
"""A package that is required in more ways than this is taken for one that is always installed."""


def conditions(packages: Sequence[Package]) -> dict[str, str]:
    """The marker under which each package is installed, if every way to it has a condition.

    `tensorflow-macos; sys_platform == 'darwin'` requires `tensorflow`, which is then installed on
    macOS only, although its own entry does not say so.
    """
    required: dict[str, list[Edge]] = {}
    for package in packages:
        own = normalised(str(package.get("name", "")))
        edges = (
            Edge(str(each.get("name", "")), str(each.get("marker") or ""))
            for each in _edges(package)
        )
        required.setdefault("" if is_project(package) else own, []).extend(edges)
    return conditions_of(required)


class Edge(NamedTuple):
    """A package that another one requires."""

    name: str
    marker: str
    """Empty if it is always required."""


def conditions_of(required: Mapping[str, Sequence[Edge]]) -> dict[str, str]:
    """The markers of packages, by what each package requires; the project itself is ""."""
    ways: dict[str, set[frozenset[str]]] = {}
    waiting = [("", frozenset[str]())]
    while waiting:
        name, way = waiting.pop()
        for edge in required.get(name, ()):
            marker = _without_extra(edge.marker)
            longer = way | {marker} if marker else way
            target = normalised(edge.name)
            known = ways.setdefault(target, set())
            if any(earlier <= longer for earlier in known):
                continue
            if len(known) >= _MOST_WAYS:
                longer = frozenset()
            known -= {earlier for earlier in known if longer <= earlier}
            known.add(longer)
            waiting.append((target, longer))
    return {
        name: " or ".join(
            sorted(" and ".join(f"({text})" for text in sorted(way)) for way in found)
        )
        for name, found in ways.items()
        if frozenset() not in found
    }


def _without_extra(marker: str) -> str:
    """Extras and groups are parts of a project, which the user chooses."""
    plain = _AND_EXTRA.sub("", marker)
    return "" if "extra" in plain else plain


def _edges(package: Package) -> list[Package]:
    """Its dependencies, also those of its extras and groups."""
    listed = [package.get("dependencies")]
    for key in ("optional-dependencies", "dev-dependencies"):
        parts = package.get(key)
        listed += parts.values() if isinstance(parts, dict) else ()
    return [
        item
        for items in listed
        if isinstance(items, list)
        for item in items
        if isinstance(item, dict)
    ]


def conflicting_parts(packages: Sequence[Package]) -> dict[int, str]:
    """Entries of a package with several entries that only a part of the project selects.

    uv locks one entry for each of several parts that exclude each other, such as the extras cpu and
    cuda. The dependencies on such an entry have a marker with the name of the part.
    """
    wanted = _dependencies_on(packages)
    names = [normalised(str(package.get("name", ""))) for package in packages]
    parts = dict[int, str]()
    for number, package in enumerate(packages):
        if names.count(names[number]) < 2:
            continue
        markers = wanted.get(_identity(package), [])
        if markers and not any(_is_always(marker) for marker in markers):
            match = next((found for text in markers if (found := _PART.search(text))), None)
            parts[number] = _part_name(match) if match else "optional"
    return parts


_PART = re.compile(r"extra == '(extra|group)-(\d{1,4})-([\w.-]{1,200})'")
_SYSTEMS = (
    {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "aarch64"},
    {"sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
)
_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))


def _part_name(match: re.Match[str]) -> str:
    """`extra-7-project-cpu` is the extra cpu of a project with a name of 7 letters."""
    kind, length, rest = match.groups()
    return f"{kind} {rest[int(length) + 1 :]}"


def _identity(package: Package) -> tuple[str, str, str]:
    source = package.get("source")
    place = source.get("registry", "") if isinstance(source, dict) else ""
    return normalised(str(package.get("name", ""))), str(package.get("version", "")), str(place)


def _dependencies_on(packages: Sequence[Package]) -> dict[tuple[str, str, str], list[str]]:
    """The markers of all dependencies that name a version, by what they depend on."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for package in packages:
        for edge in _edges(package):
            if "version" in edge:
                found.setdefault(_identity(edge), []).append(str(edge.get("marker", "")))
    return found


def _is_always(marker: str) -> bool:
    """Whether it can hold on some machine without any part of the project."""
    if "extra" not in marker:
        return True
    try:
        parsed = Marker(marker)
    except (InvalidMarker, RecursionError):
        return True
    return any(
        parsed.evaluate({**system, **_versions(python), "extra": ""})
        for system in _SYSTEMS
        for python in _PYTHONS
    )


def _versions(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.5"}


def is_project(package: Package) -> bool:
    """Whether it is a project of the workspace, and not a package that it requires."""
    origin = package.get("source")
    return isinstance(origin, dict) and bool({"virtual", "editable"} & origin.keys())


def _required(package: Package) -> list[str]:
    return _names(package.get("dependencies"))


def _parts(project: Package) -> Iterator[tuple[str, list[str]]]:
    for key, kind in (("optional-dependencies", "extra"), ("dev-dependencies", "group")):
        listed = project.get(key)
        for name, dependencies in listed.items() if isinstance(listed, dict) else ():
            yield f"{kind} {name}", _names(dependencies)


def _names(dependencies: object) -> list[str]:
    """The packages of a list of dependencies; a dependency with an extra includes its packages."""
    listed = dependencies if isinstance(dependencies, list) else []
    return [
        normalised(str(item.get("name", ""))) + "".join(f"[{extra}]" for extra in _extras(item))
        for item in listed
        if isinstance(item, dict)
    ]


def _extras(dependency: Package) -> list[str]:
    given = dependency.get("extra", [])
    return [text for text in given if isinstance(text, str)] if isinstance(given, list) else []


def _reached(start: Sequence[str], by_name: dict[str, list[Package]]) -> set[str]:
    """The packages that are installed with some others."""
    waiting, seen = list(start), set[str]()
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        name, *extras = wanted.replace("]", "").split("[")
        for package in by_name.get(name, ()):
            waiting += _required(package)
            optional = package.get("optional-dependencies")
            if isinstance(optional, dict):
                waiting += [name for extra in extras for name in _names(optional.get(extra))]
    return {wanted.partition("[")[0] for wanted in seen}
