"""The files of a project, as the rules about images, services and jobs see them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, Protocol

from whygpu.errors import UsageError
from whygpu.host.files import read_start

LARGEST = 4 << 20
"""Bytes of a file that another one names; lock files of large projects have a few megabytes."""

FileKind = Literal[
    "dockerfile", "compose", "dev container", "variables", "requirements", "workflow", "yaml", "job"
]

_WORKFLOWS = re.compile(r"(?:^|[/\\])\.github[/\\]workflows$")
# Each begins at the start of the name: searched from every letter, it would take quadratic time.
_NAMES: tuple[tuple[re.Pattern[str], FileKind], ...] = (
    (
        re.compile(
            r"\A(?:(?:dockerfile|containerfile)"
            r"(?!.*\.(?:md|py|sh|txt|dockerignore|j2|jinja2?|in|tmpl|tpl)$)"
            r"(?:[._-].*)?|.*\.(?:dockerfile|containerfile))"
        ),
        "dockerfile",
    ),
    (re.compile(r"\A(?:nvidia-)?(?:docker-)?compose[\w.-]*\.ya?ml"), "compose"),
    (re.compile(r"\.?devcontainer\.json"), "dev container"),
    (re.compile(r"\A(?:\.env(?:[._-][\w.-]*)?|[\w-]+\.env)"), "variables"),
    (
        re.compile(
            r"\A(?:(?:[\w-]+[_.-])?requirements?[\w.-]*\.(?:txt|in)|environment[\w.-]*\.ya?ml"
            r"|pyproject\.toml|(?:uv|poetry|pdm|pixi)\.lock|(?:[\w.-]+[.-])?conda-lock\.ya?ml)"
        ),
        "requirements",
    ),
    (re.compile(r"\A.*\.ya?ml"), "yaml"),
    (re.compile(r"\A.*\.(?:sh|bash|slurm|sbatch|sbat|sub|pbs|qsub|lsf|bsub|job)"), "job"),
)


def kind_of(path: str) -> FileKind | None:
    """What a file is, by its name; None for Python, notebooks and anything else."""
    folder, name = os.path.split(path.lower())
    if name == ".gitlab-ci.yml" or (name.endswith((".yml", ".yaml")) and _WORKFLOWS.search(folder)):
        return "workflow"
    return _kind_by_name(name)


@lru_cache(maxsize=4096)
def _kind_by_name(name: str) -> FileKind | None:
    return next((kind for pattern, kind in _NAMES if pattern.fullmatch(name)), None)


class ProjectFiles(Protocol):
    """Access to the files beside a linted file."""

    def read(self, path: str) -> str | None:
        """The text of a file; None if it cannot be read."""

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder; empty if it cannot be listed."""


class DiskFiles:
    def read(self, path: str) -> str | None:
        return _text(os.path.normpath(path))

    def names(self, folder: str) -> tuple[str, ...]:
        return _names_in(os.path.normpath(folder))


class GivenFiles:
    """Files that are given as texts, for examples."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def read(self, path: str) -> str | None:
        return self._texts.get(os.path.normpath(path))

    def names(self, folder: str) -> tuple[str, ...]:
        start = "" if os.path.normpath(folder) == "." else os.path.normpath(folder) + "/"
        below = (path[len(start) :] for path in self._texts if path.startswith(start))
        return tuple(dict.fromkeys(path.partition("/")[0] for path in below))


@lru_cache(maxsize=512)
def _text(path: str) -> str | None:
    try:
        content = read_start(path, LARGEST + 1)
    except (OSError, ValueError):
        return None
    if len(content) > LARGEST:
        return None
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


@lru_cache(maxsize=4096)
def _names_in(folder: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))
    except (OSError, ValueError):
        return ()


def forget() -> None:
    """Read files again that were read before: they may have changed since."""
    _text.cache_clear()
    _names_in.cache_clear()


def load_from(files: ProjectFiles) -> Callable[[str], str]:
    """For the readers of requirement files, which get a text or UsageError."""

    def load(path: str) -> str:
        content = files.read(path)
        if content is None:
            raise UsageError(f"{path} cannot be read")
        return content

    return load
