"""The distributions that are installed in the target, by their metadata folders."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.collectors.requirements import holds_in
from whygpu.host.base import Host
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.target import Interpreter, Package
from whygpu.tables.distributions import matters, normalised

METADATA_LIMIT = 1 << 18

_METADATA_FOLDER = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._]|-(?!\d))*)-(?P<version>[^-]+)"
    r"(?:-py\d[\d.]*(?:-.+)?)?\.(?:dist-info|egg-info|egg)"
)
_DEVELOP_FOLDER = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\.egg-info")


def collect(host: Host, interpreter: Interpreter) -> Observed[tuple[Package, ...]]:
    """Every distribution on sys.path, in order; a later copy of a name is shadowed."""
    found: list[Package] = []
    first_location: dict[str, str] = {}
    unreadable: list[str] = []
    for folder in _folders(host, interpreter.paths):
        names = host.list(folder)
        if isinstance(names, Unknown):
            unreadable.append(names.reason)
        for entry in _entries(host, folder, names.value if isinstance(names, Known) else ()):
            location = first_location.setdefault(entry.name, folder)
            found.append(_package(host, interpreter, entry, shadowed=location != folder))
    if isinstance(interpreter.user_site, Unknown):
        unreadable.append(interpreter.user_site.reason)
    if unreadable:
        # A package in a folder that cannot be read would be reported as not installed.
        return Unknown("; ".join(unreadable))
    return Known(tuple(found), f"metadata folders on sys.path of {interpreter.path}")


class _Entry(NamedTuple):
    name: str
    version: str
    location: str
    metadata: str
    """The folder with METADATA (or PKG-INFO), or that file itself."""


def _folders(host: Host, paths: tuple[str, ...]) -> Iterator[str]:
    """The folders of sys.path, each once: lib64 is often a link to lib."""
    seen: set[str] = set()
    for path in paths:
        facts = host.stat(path)
        if isinstance(facts, Unknown):
            yield path
        elif (
            isinstance(facts, Known)
            and facts.value.kind == "folder"
            and facts.value.identity not in seen
        ):
            seen.add(facts.value.identity)
            yield path


def _entries(host: Host, folder: str, names: tuple[str, ...]) -> Iterator[_Entry]:
    if folder.endswith(".egg"):
        own = _METADATA_FOLDER.fullmatch(os.path.basename(folder))
        if own:
            metadata = os.path.join(folder, "EGG-INFO")
            yield _Entry(normalised(own["name"]), own["version"], folder, metadata)
    for name in names:
        # A leading "~" is what pip leaves behind when it cannot finish an uninstallation.
        if not name.endswith(("-info", ".egg-link")) or name.startswith("~"):
            continue
        entry = _entry(host, folder, name)
        if entry is not None:
            yield entry


def _entry(host: Host, folder: str, name: str) -> _Entry | None:
    path = os.path.join(folder, name)
    match = _METADATA_FOLDER.fullmatch(name)
    if match:
        return _Entry(normalised(match["name"]), match["version"], folder, path)
    if name.endswith(".egg-link"):
        link = host.read(path)
        if not isinstance(link, Known) or not link.value.strip():
            return None
        source = link.value.splitlines()[0].strip()
        project = name[: -len(".egg-link")].replace("-", "_")
        return _developed(host, source, f"{project}.egg-info")
    return _developed(host, folder, name)


def _developed(host: Host, folder: str, name: str) -> _Entry | None:
    """An installation whose version is only inside its metadata."""
    match = _DEVELOP_FOLDER.fullmatch(name)
    if match is None:
        return None
    path = os.path.join(folder, name)
    version = next((value for key, value in _headers(host, path) if key == "version"), None)
    return None if version is None else _Entry(normalised(match["name"]), version, folder, path)


def _package(host: Host, interpreter: Interpreter, entry: _Entry, *, shadowed: bool) -> Package:
    requires: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    if matters(entry.name):
        lines = (value for key, value in _headers(host, entry.metadata) if key == "requires-dist")
        requires = tuple(line for line in lines if holds_in(host.platform, interpreter, line))
        tags = tuple(
            value for key, value in _headers(host, entry.metadata, "WHEEL") if key == "tag"
        )
    return Package(
        name=entry.name,
        version=entry.version,
        location=entry.location,
        shadowed=shadowed,
        requires=requires,
        wheel_tags=tags,
    )


def _headers(host: Host, metadata: str, file: str = "") -> Iterator[tuple[str, str]]:
    """The header lines of METADATA, WHEEL or PKG-INFO; none if the file cannot be read."""
    name = file or ("METADATA" if metadata.endswith(".dist-info") else "PKG-INFO")
    # The headers come first; the description after them may be long.
    text = host.read(os.path.join(metadata, name), METADATA_LIMIT, whole=False)
    if not isinstance(text, Known) and not file:
        # An egg-info made by distutils is one file.
        text = host.read(metadata, METADATA_LIMIT, whole=False)
    if not isinstance(text, Known):
        return
    for line in text.value.splitlines():
        if not line.strip():
            return
        key, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            yield key.lower(), value.strip()
