"""The lint settings: [tool.whygpu.lint] in pyproject.toml, and the command line."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from whygpu.errors import Option, UsageError
from whygpu.host.files import read_whole
from whygpu.linter.image_setup import Judge
from whygpu.model.cause import Cause
from whygpu.model.code_finding import FileProblem, FileProblemKind
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.program import TensorFlowLine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "pyproject.toml"
LARGEST = 1 << 20
"""Bytes of pyproject.toml; those of the largest projects have some ten thousand."""
TABLE = "[tool.whygpu.lint]"
_KEYS = ("select", "ignore", "exclude", "per-file-ignores", "tensorflow")


class Settings(NamedTuple):
    select: tuple[str, ...] = ()
    """Codes, prefixes of codes, or names of causes; empty means all."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Patterns of paths, relative to the folder of pyproject.toml."""
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """For each pattern of files, what to ignore there."""
    tensorflow: TensorFlowLine | None = None
    """The TensorFlow that the project is for, if the settings say so."""
    root: str = ""
    named: frozenset[str] = frozenset()
    """Files that the user named, rather than a folder with them."""
    judge: Judge | None = None
    """Judges requirements; None if nothing can."""
    machine: MachineSpec | None = None
    """The machine that images, jobs and requirements are for, if the user said it."""
    problem: FileProblem | None = None
    """Why the file of the settings could not be read; the defaults are used then."""

    def excludes(self, path: str) -> bool:
        return any(self._matches(path, pattern) for pattern in self.exclude)

    def _matches(self, path: str, pattern: str) -> bool:
        place = os.path.relpath(os.path.abspath(path), self.root or os.curdir).replace(os.sep, "/")
        pattern = pattern.rstrip("/")
        return (
            fnmatch.fnmatch(place, pattern)
            or fnmatch.fnmatch(place, f"{pattern}/*")
            or fnmatch.fnmatch(os.path.basename(place), pattern)
            or (not pattern.startswith("*") and f"/{pattern}/" in f"/{place}")
        )

    def causes_for(self, path: str, causes: Sequence[Cause]) -> Sequence[Cause]:
        """The causes to check in this file."""
        unwanted = list(self.ignore)
        for pattern, names in self.per_file:
            if self._matches(path, pattern):
                unwanted += names
        return _named(self.select, tuple(unwanted), tuple(causes))


@lru_cache(maxsize=256)
def _named(
    select: tuple[str, ...], unwanted: tuple[str, ...], causes: tuple[Cause, ...]
) -> tuple[Cause, ...]:
    return tuple(
        cause
        for cause in causes
        if (not select or _names(select, cause)) and not _names(unwanted, cause)
    )


def _names(words: Sequence[str], cause: Cause) -> bool:
    return any(
        cause.slug == word.lower() or cause.code.startswith(word.upper()) for word in words if word
    )


def load(paths: Sequence[str], causes: Sequence[Cause]) -> Settings:
    """The settings of the project that contains these paths; defaults if there are none.

    A file that is broken, perhaps in a part for another tool, does not keep lint from reading the
    others.
    """
    file = _nearest(paths)
    if file is None:
        return Settings()
    try:
        data = tomllib.loads(read_whole(file, LARGEST).decode("utf-8"))
    except OSError as error:
        return _unread(file, "unreadable", f"it cannot be read: {error.strerror}")
    # Also of UTF-8, and of numbers of thousands of digits.
    except ValueError as error:
        return _unread(file, "syntax", f"it is not valid TOML: {error}")
    except RecursionError:
        return _unread(file, "too-large", "it is nested too deeply")
    table = data.get("tool", {})
    for name in ("whygpu", "lint"):
        table = table.get(name, {}) if isinstance(table, dict) else {}
    return _settings(file, table, causes)


def _unread(file: str, kind: FileProblemKind, why: str) -> Settings:
    message = f"{why}; settings of lint in it are not used"
    return Settings(problem=FileProblem(os.path.relpath(file), 1, kind, message))


def _nearest(paths: Sequence[str]) -> str | None:
    folders = [os.path.abspath(path) for path in paths if path != "-"] or [os.getcwd()]
    try:
        folder = os.path.commonpath(folders)
    except ValueError:
        return None
    while True:
        file = os.path.join(folder, FILE)
        if os.path.isfile(file):
            return file
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _settings(file: str, table: Any, causes: Sequence[Cause]) -> Settings:
    if not isinstance(table, dict):
        raise UsageError(f"{file}: {TABLE} must be a table")
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise UsageError(
            f"{file}: {TABLE} has no setting {unknown[0]!r}; it has {', '.join(_KEYS)}"
        )
    lists = {name: _words(file, name, table.get(name, [])) for name in ("select", "ignore")}
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise UsageError(f"{file}: per-file-ignores must be a table of patterns and lists of codes")
    pairs = tuple(
        (pattern, _words(file, "per-file-ignores", names)) for pattern, names in per_file.items()
    )
    for words in (*lists.values(), *(names for _, names in pairs)):
        check_codes(words, causes, file)
    given = table.get("tensorflow")
    return Settings(
        lists["select"],
        lists["ignore"],
        _words(file, "exclude", table.get("exclude", [])),
        pairs,
        tensorflow_line(given, file) if given is not None else None,
        os.path.dirname(file),
    )


def _words(file: str, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{file}: {name} must be a list of strings, not {value!r}")
    return tuple(value)


def check_codes(words: Sequence[str], causes: Sequence[Cause], where: str | Option) -> None:
    for word in words:
        if not any(_names([word], cause) for cause in causes):
            raise UsageError(
                where, f": {word!r} is not a cause that lint checks; `whygpu rule` lists them"
            )


def tensorflow_line(text: object, where: str | Option) -> TensorFlowLine:
    """1.15 -> "1"."""
    found = re.fullmatch(r"([12])(\.\d+)*(\.x)?", str(text))
    if not found:
        raise UsageError(
            where, f': tensorflow must be a version such as "1.15" or "2.16", not {text!r}'
        )
    return "1" if found.group(1) == "1" else "2"
