"""Which compose files are started together, so that one may give what another lacks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from whygpu.linter.project_files import ProjectFiles, kind_of
from whygpu.readers.deployment import dev_container

_FILES = re.compile(r"\bcompose\s(?:[^\n\\]|\\.|\\\n){0,400}")
_FILE = re.compile(r"\s(?:-f|--file)[= ]\s{0,4}[\"']?([^\s\"']{1,200})")
_COMPOSE_FILE = re.compile(
    r"^[ \t]*(?:export[ \t]+)?COMPOSE_FILE=[\"']?([^\s\"'#]{1,400})", re.MULTILINE
)
_SCRIPTS = re.compile(r"\A(?:readme.*|makefile|justfile|.*\.sh|\.env.*)", re.IGNORECASE)
_DEV_CONTAINER = ".devcontainer"
_FOLDERS_UP = 2


def companions(path: str, files: ProjectFiles) -> Iterator[str]:
    """What a devcontainer.json, a command or COMPOSE_FILE names together with this file."""
    own = os.path.normpath(path)
    for listed in _lists_around(path, files):
        if own in listed:
            yield from (other for other in listed if other != own)


def _lists_around(path: str, files: ProjectFiles) -> Iterator[tuple[str, ...]]:
    """Each list of files that something in the folder, or in one above it, starts together."""
    folder = os.path.dirname(path) or os.curdir
    for _ in range(_FOLDERS_UP + 1):
        names = files.names(folder)
        for name in names:
            if _SCRIPTS.fullmatch(name):
                text = files.read(os.path.join(folder, name)) or ""
                yield from _named_in(text, folder, os.path.dirname(path))
        yield from _of_dev_containers(folder, names, files)
        if ".git" in names or folder in (os.curdir, os.sep):
            return
        folder = os.path.dirname(folder) or os.curdir


def _named_in(text: str, *folders: str) -> Iterator[tuple[str, ...]]:
    """A path in a README is relative to its folder, or to that of the compose file."""
    commands = (_FILE.findall(command) for command in _FILES.findall(text))
    variables = (re.split("[:;]", value) for value in _COMPOSE_FILE.findall(text))
    for listed in (*commands, *variables):
        if len(listed) > 1:
            for folder in dict.fromkeys(folders):
                yield tuple(os.path.normpath(os.path.join(folder, name)) for name in listed)


def _of_dev_containers(
    folder: str, names: tuple[str, ...], files: ProjectFiles
) -> Iterator[tuple[str, ...]]:
    below = os.path.join(folder, _DEV_CONTAINER)
    places = [(folder, names)]
    if _DEV_CONTAINER in names:
        inner = files.names(below)
        places += [(below, inner)]
        deeper = (os.path.join(below, name) for name in inner if kind_of(name) is None)
        places += [(each, files.names(each)) for each in deeper]
    for place, listed in places:
        for name in listed:
            if kind_of(name) == "dev container":
                text = files.read(os.path.join(place, name)) or ""
                found = dev_container.compose_files(text)
                yield tuple(os.path.normpath(os.path.join(place, each)) for each in found)
