"""Reads conda-lock.yml: the packages of conda and of pip, by platform.

conda-lock writes this file, so its lines always look the same, and no YAML parser is needed. A
version of the format that is not known is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.errors import UsageError
from whygpu.model.requirement_file import (
    FileLine,
    PinnedRequirement,
    RequirementsFile,
    UnreadLine,
)
from whygpu.readers.requirement_files import Load
from whygpu.readers.requirement_files.pip_requirement import normalised
from whygpu.readers.requirement_files.pixi_lock import CONDA_FILE, PLATFORM_MARKERS

_VERSION = re.compile(r"version:[ ]{0,9}(\d{1,9})")
_KNOWN = "1"
_NAME = re.compile(r"[ ]{0,9}- name:[ ]{0,9}(\S{1,200})")
_KEY = re.compile(
    r"[ ]{1,20}(version|manager|platform|url|category|optional):[ ]{0,9}(\S.{0,4000})"
)
_Entry = tuple[FileLine, dict[str, str]]


def read(path: str, load: Load) -> RequirementsFile:
    lines = load(path).splitlines()
    version = next((match[1] for line in lines if (match := _VERSION.fullmatch(line))), "")
    if version != _KNOWN:
        found = f"version {version}" if version else "this file"
        raise UsageError(f"{path}: whygpu reads version {_KNOWN} of conda-lock.yml, not {found}")
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    for place, entry in _entries(path, lines):
        marker = PLATFORM_MARKERS.get(entry.get("platform", ""))
        if marker is None:
            reason = f"the platform {entry.get('platform', '')!r} is not known"
            unread.append(UnreadLine(place, reason))
        elif "version" in entry:
            requirements.append(_package(place, entry, marker))
    return RequirementsFile(path, "conda-lock.yml", tuple(requirements), unread=tuple(unread))


def _entries(path: str, lines: list[str]) -> Iterator[_Entry]:
    """The entries of the list `package`."""
    is_list = False
    entry: _Entry | None = None
    for number, line in enumerate(lines, 1):
        if line[:1] not in (" ", "-", "#", ""):
            is_list = line.startswith("package:")
        if not is_list:
            continue
        if match := _NAME.fullmatch(line):
            if entry is not None:
                yield entry
            entry = FileLine(path, number, line.strip()), {"name": _unquoted(match[1])}
        elif entry is not None and (match := _KEY.fullmatch(line)):
            entry[1].setdefault(match[1], _unquoted(match[2]))
    if entry is not None:
        yield entry


def _unquoted(value: str) -> str:
    return value.strip().strip("\"'")


def _package(place: FileLine, entry: dict[str, str], marker: str) -> PinnedRequirement:
    category = entry.get("category", "main")
    is_optional = category != "main" or entry.get("optional") == "true"
    plain = PinnedRequirement(
        name=normalised(entry["name"]),
        extras=(),
        specifier=f"=={entry['version']}",
        marker=marker,
        place=place,
        group=f"category {category}" if is_optional else "",
    )
    if entry.get("manager") == "pip":
        return plain
    address = entry.get("url", "")
    file = CONDA_FILE.fullmatch(address.rpartition("/")[2])
    return plain._replace(
        manager="conda",
        build=file["build"] if file is not None else "",
        channel="/".join(address.split("/")[:-2]),
    )
