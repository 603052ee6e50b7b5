"""Reads pixi.lock: the packages of conda and of pip, by environment and platform.

pixi writes this file, so its lines always look the same, and no YAML parser is needed. A version of
the format that is not known is refused.
"""

from __future__ import annotations

import re

from whygpu.errors import UsageError
from whygpu.model.requirement_file import (
    FileLine,
    PackageSource,
    PinnedRequirement,
    RequirementsFile,
    UnreadLine,
)
from whygpu.readers.requirement_files import Load
from whygpu.readers.requirement_files.pip_requirement import normalised, wheel_of

_KNOWN = ("5", "6", "7")
_VERSION = re.compile(r"version:\s*(\d+)")
_TOP_KEY = re.compile(r"^([\w-]+):.*")
_ENVIRONMENT = re.compile(r"  ([\w.-]+):")
_PLATFORM = re.compile(r"      ([\w-]+):")
_PACKAGE = re.compile(r"      - (conda|pypi): (\S+)")
CONDA_FILE = re.compile(r"^(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)\.(?:conda|tar\.bz2)")
PLATFORM_MARKERS = {
    "linux-64": 'sys_platform == "linux" and platform_machine == "x86_64"',
    "linux-aarch64": 'sys_platform == "linux" and platform_machine == "aarch64"',
    "win-64": 'sys_platform == "win32" and platform_machine == "AMD64"',
    "osx-64": 'sys_platform == "darwin" and platform_machine == "x86_64"',
    "osx-arm64": 'sys_platform == "darwin" and platform_machine == "arm64"',
}


def read(path: str, load: Load) -> RequirementsFile:
    lines = load(path).splitlines()
    version = next((match[1] for line in lines[:5] if (match := _VERSION.fullmatch(line))), "")
    if version not in _KNOWN:
        found = f"version {version}" if version else "this file"
        raise UsageError(
            f"{path}: whygpu reads versions {_KNOWN[0]} to {_KNOWN[-1]} of pixi.lock, not {found}"
        )
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    section = environment = platform = ""
    for number, raw in enumerate(lines, 1):
        if match := _TOP_KEY.fullmatch(raw):
            section = match[1]
        elif section != "environments":
            continue
        elif match := _ENVIRONMENT.fullmatch(raw):
            environment = match[1]
        elif match := _PLATFORM.fullmatch(raw):
            platform = match[1]
        elif match := _PACKAGE.fullmatch(raw):
            place = FileLine(path, number, raw.strip())
            package = _package(match[1], match[2], place)
            if package is None:
                continue
            if platform not in PLATFORM_MARKERS:
                unread.append(UnreadLine(place, f"the platform {platform!r} is not known"))
                continue
            group = "" if environment == "default" else f"environment {environment}"
            requirements.append(package._replace(marker=PLATFORM_MARKERS[platform], group=group))
    return RequirementsFile(path, "pixi.lock", tuple(requirements), unread=tuple(unread))


def _package(kind: str, address: str, place: FileLine) -> PinnedRequirement | None:
    """A package, by the name of its file; None for a project that is built from source."""
    if kind == "pypi":
        wheel = wheel_of(address)
        if wheel is None:
            return None
        name, version = wheel
        folder = address.rpartition("/")[0]
        return PinnedRequirement(
            name, (), f"=={version}", "", place, sources=(PackageSource(folder, "explicit", place),)
        )
    match = CONDA_FILE.fullmatch(address.rpartition("/")[2])
    if match is None:
        return None
    return PinnedRequirement(
        name=normalised(match["name"]),
        extras=(),
        specifier=f"=={match['version']}",
        marker="",
        place=place,
        manager="conda",
        build=match["build"],
        channel="/".join(address.split("/")[:-2]),
    )
