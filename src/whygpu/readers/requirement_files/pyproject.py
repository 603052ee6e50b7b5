"""Reads pyproject.toml: the standard tables, and those of uv and Poetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whygpu.model.requirement_file import (
    FileLine,
    PackageSource,
    PinnedRequirement,
    RequirementsFile,
    SourceRole,
    UnreadLine,
)
from whygpu.readers.requirement_files import Load
from whygpu.readers.requirement_files.pip_requirement import normalised, pip_requirement
from whygpu.readers.requirement_files.poetry_versions import extras_of, poetry_range
from whygpu.readers.requirement_files.toml_lines import TomlFile

Found = PinnedRequirement | UnreadLine
_POETRY = "tool.poetry"


def read(path: str, load: Load) -> RequirementsFile:
    file = TomlFile(path, load(path))
    project = file.table("project")
    found = [*_standard(file), *_poetry(file)]
    requirements = [item for item in found if isinstance(item, PinnedRequirement)]
    unread = [item for item in found if isinstance(item, UnreadLine)]
    if "dependencies" in project.get("dynamic", ()):
        place = file.of_key("project", "dynamic")
        unread.append(UnreadLine(place, "the dependencies are computed when the project is built"))
    sources = _UvSources(file)
    python = project.get("requires-python", "")
    if not python:
        wanted = file.table("tool", "poetry", "dependencies").get("python", "")
        python = poetry_range(wanted) or "" if isinstance(wanted, str) else ""
    return RequirementsFile(
        path,
        "pyproject.toml",
        tuple(each for item in requirements for each in sources.applied(item)),
        requires_python=python if isinstance(python, str) else "",
        unread=tuple(unread),
    )


def _standard(file: TomlFile) -> Iterator[Found]:
    project = file.table("project")
    for text in _texts(project.get("dependencies")):
        yield pip_requirement(text, file.of_string("project", text))
    for name, lines in file.table("project", "optional-dependencies").items():
        for text in _texts(lines):
            place = file.of_string("project.optional-dependencies", text)
            yield pip_requirement(text, place, f"extra {name}")
    groups = file.table("dependency-groups")
    for name, lines in groups.items():
        for text in _texts(lines):
            place = file.of_string("dependency-groups", text)
            yield pip_requirement(text, place, f"group {name}")
    for text in _texts(file.table("tool", "uv").get("dev-dependencies")):
        yield pip_requirement(text, file.of_string("tool.uv", text), "group dev")


def _texts(value: Any) -> list[str]:
    """The strings of a list. Other items, such as included groups, name no package themselves."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class _UvSources:
    """The indexes of uv, and which of them each package is taken from."""

    def __init__(self, file: TomlFile) -> None:
        self._file = file
        self._sources = file.table("tool", "uv", "sources")
        self._by_name: dict[str, PackageSource] = {}
        self._for_all: list[PackageSource] = []
        uv = file.table("tool", "uv")
        for number, item in enumerate(_tables(uv.get("index"))):
            place = file.of_key(f"tool.uv.index#{number}", "url")
            role: SourceRole = "index" if item.get("default") is True else "extra"
            source = PackageSource(str(item.get("url", "")), role, place)
            self._by_name[str(item.get("name", ""))] = source
            if item.get("explicit") is not True:
                self._for_all.append(source)
        if isinstance(url := uv.get("index-url"), str):
            self._for_all.append(PackageSource(url, "index", file.of_key("tool.uv", "index-url")))
        for url in _texts(uv.get("extra-index-url")):
            place = file.of_string("tool.uv", url)
            self._for_all.append(PackageSource(url, "extra", place))

    def applied(self, requirement: PinnedRequirement) -> Iterator[PinnedRequirement]:
        """The requirement once for each source that uv may take it from."""
        if requirement.sources:
            # Poetry's own sources.
            yield requirement
            return
        plain = requirement._replace(sources=tuple(self._for_all))
        name = next((n for n in self._sources if normalised(n) == requirement.name), None)
        given = self._sources.get(name) if name is not None else None
        listed = given if isinstance(given, list) else [given]
        entries = [entry for entry in listed if isinstance(entry, dict)]
        if name is None or not entries:
            yield plain
            return
        of_group = [e for e in entries if _group_of(e) == requirement.group]
        entries = of_group or [e for e in entries if not _group_of(e)]
        if not entries:
            yield plain
        for entry in entries:
            yield self._from(plain, entry, self._file.of_key("tool.uv.sources", name))

    def _from(
        self, plain: PinnedRequirement, entry: dict[str, Any], place: FileLine
    ) -> PinnedRequirement:
        conditions = [plain.marker, str(entry.get("marker", ""))]
        marker = " and ".join(f"({text})" for text in conditions if text)
        source = self._by_name.get(str(entry.get("index", "")))
        if source is not None:
            named = PackageSource(source.url, "explicit", source.place)
            return plain._replace(marker=marker, sources=(named,))
        other = next((str(entry[key]) for key in ("url", "git", "path") if key in entry), "")
        return plain._replace(marker=marker, url=other or "a source that is not an index")


def _group_of(entry: dict[str, Any]) -> str:
    """The optional part that an entry of tool.uv.sources is for; empty if it is for all."""
    for key in ("extra", "group"):
        if isinstance(entry.get(key), str):
            return f"{key} {entry[key]}"
    return ""


def _tables(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _poetry(file: TomlFile) -> Iterator[Found]:
    sources = {
        str(item.get("name", "")): PackageSource(
            str(item.get("url", "")),
            "explicit",
            file.of_key(f"{_POETRY}.source#{number}", "url"),
        )
        for number, item in enumerate(_tables(file.table("tool", "poetry").get("source")))
    }
    tables = [(f"{_POETRY}.dependencies", file.table("tool", "poetry", "dependencies"), "")]
    for name, group in file.table("tool", "poetry", "group").items():
        if isinstance(group, dict) and isinstance(group.get("dependencies"), dict):
            table = f"{_POETRY}.group.{name}.dependencies"
            tables.append((table, group["dependencies"], f"group {name}"))
    extras = extras_of(file.table("tool", "poetry", "extras"))
    old = file.table("tool", "poetry", "dev-dependencies")
    tables.append((f"{_POETRY}.dev-dependencies", old, "group dev"))
    for table, dependencies, group_name in tables:
        for name, wanted in dependencies.items():
            if name.lower() == "python":
                continue
            place = file.of_key(table, name)
            for entry in wanted if isinstance(wanted, list) else [wanted]:
                found = _poetry_requirement(name, entry, place, group_name, sources)
                if isinstance(found, PinnedRequirement) and found.group == "optional":
                    extra = extras.get(found.name)
                    found = found._replace(group=f"extra {extra}" if extra else "optional")
                yield found


def _poetry_requirement(
    name: str, wanted: Any, place: FileLine, group: str, sources: dict[str, PackageSource]
) -> Found:
    entry = {"version": wanted} if isinstance(wanted, str) else wanted
    if not isinstance(entry, dict):
        return UnreadLine(place, "it is not a requirement as Poetry writes it")
    version = entry.get("version", "*")
    specifier = poetry_range(version) if isinstance(version, str) else None
    python = poetry_range(str(entry.get("python", "*")))
    if specifier is None or python is None:
        return UnreadLine(place, f"the range {version!r} was not understood")
    conditions = [str(entry.get("markers", ""))]
    conditions += [_python_marker(part) for part in python.split(",") if part]
    source = sources.get(str(entry.get("source", "")))
    other = next((str(entry[key]) for key in ("url", "git", "path") if key in entry), "")
    return PinnedRequirement(
        name=normalised(name),
        extras=tuple(sorted(normalised(extra) for extra in _texts(entry.get("extras")))),
        specifier=specifier,
        marker=" and ".join(f"({text})" for text in conditions if text),
        place=place,
        sources=(source,) if source else (),
        url=other,
        group=group or ("optional" if entry.get("optional") is True else ""),
    )


def _python_marker(part: str) -> str:
    operator = part.rstrip("0123456789.*")
    return f'python_version {operator} "{part[len(operator) :]}"'
