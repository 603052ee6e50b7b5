"""Reads requirements.txt, with the files that it includes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.model.requirement_file import (
    FileLine,
    PackageSource,
    PinnedRequirement,
    RequirementsFile,
    SourceRole,
    UnreadLine,
)
from whygpu.readers.requirement_files import Load
from whygpu.readers.requirement_files.pip_requirement import pip_requirement

MOST_FILES = 50
_COMMENT = re.compile(r"(^|\s)#.*")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
_OPTION = re.compile(r"(--?[\w-]+)(?:[=\s]\s*(.*))?", re.DOTALL)
_CONDA_PACKAGES = frozenset({"python", "pytorch-cuda", "pytorch-mutex"})
"""Names of conda that pip does not know: a file with one of them is for `conda install --file`."""
_PER_REQUIREMENT = re.compile(r"\s--?(hash|config-settings?|global-option|install-option)\b")
_SOURCE_HERE = re.compile(
    r"\s(--index-url|-i|--extra-index-url|--find-links|-f)(?:=|\s{1,9})(\S{1,2000})"
)
"""An option that has to be in a line of its own. pip ignores it here, and uv refuses the line."""
_REPOSITORY = re.compile(r"(?:git|hg|svn|bzr)\+\S+|https?://\S+|file:\S+|\.{0,2}/\S*")
_INCLUDES = {
    "-r": "requirement",
    "--requirement": "requirement",
    "-c": "constraint",
    "--constraint": "constraint",
}
_SOURCES: dict[str, SourceRole] = {
    "-i": "index",
    "--index-url": "index",
    "--pypi-url": "index",
    "--extra-index-url": "extra",
    "-f": "find-links",
    "--find-links": "find-links",
}
_HARMLESS = frozenset(
    (
        "--trusted-host",
        "--prefer-binary",
        "--require-hashes",
        "--only-binary",
        "--no-binary",
        "--use-feature",
        "--no-build-isolation",
    )
)
"""Options that do not change what is installed on a machine with pip's usual wheels."""


class _Line(NamedTuple):
    text: str
    """The whole logical line, without comments."""
    place: FileLine


def read(path: str, load: Load) -> RequirementsFile:
    return _Reader(load).run(path)


class _Reader:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._seen: set[tuple[str, bool]] = set()
        self._requirements: list[PinnedRequirement] = []
        self._constraints: list[PinnedRequirement] = []
        self._sources: list[PackageSource] = []
        self._unread: list[UnreadLine] = []

    def run(self, path: str) -> RequirementsFile:
        self._file(path, is_constraint=False)
        # pip applies these options to every requirement, wherever they are.
        replaced = [source for source in self._sources if source.role == "index"][-1:]
        others = [source for source in self._sources if source.role != "index"]
        sources = (*replaced, *others)
        if not sources and any(each.name in _CONDA_PACKAGES for each in self._requirements):
            self._requirements = [each._replace(manager="conda") for each in self._requirements]
        return RequirementsFile(
            path,
            "requirements.txt",
            tuple(requirement._replace(sources=sources) for requirement in self._requirements),
            tuple(self._constraints),
            unread=tuple(self._unread),
        )

    def _file(self, path: str, *, is_constraint: bool) -> None:
        key = (os.path.normpath(path), is_constraint)
        if key in self._seen:
            return
        self._seen.add(key)
        if len(self._seen) > MOST_FILES:
            raise UsageError(f"{path}: it is one of more than {MOST_FILES} included files")
        for line in _lines(path, self._load(path)):
            self._line(line, is_constraint=is_constraint)

    def _line(self, line: _Line, *, is_constraint: bool) -> None:
        if _VARIABLE.search(line.text):
            self._unread.append(UnreadLine(line.place, "it contains an environment variable"))
        elif line.text.startswith("-"):
            self._option(line, is_constraint=is_constraint)
        else:
            self._requirement(line, self._constraints if is_constraint else self._requirements)

    def _requirement(self, line: _Line, to: list[PinnedRequirement]) -> None:
        here = _SOURCE_HERE.search(line.text)
        text = line.text[: here.start()] if here is not None else line.text
        text = _PER_REQUIREMENT.split(text, maxsplit=1)[0].strip()
        found = pip_requirement(text, line.place)
        if isinstance(found, UnreadLine):
            if _REPOSITORY.fullmatch(text):
                found = UnreadLine(line.place, "what it installs was not read")
            self._unread.append(found)
        elif here is not None:
            ignored = PackageSource(here[2], _SOURCES[here[1]], line.place)
            to.append(found._replace(ignored=ignored))
        else:
            to.append(found)

    def _option(self, line: _Line, *, is_constraint: bool) -> None:
        match = _OPTION.fullmatch(line.text)
        name, value = (match[1], _unquoted(match[2] or "")) if match else ("", "")
        if name[:2] in ("-r", "-c", "-i", "-f") and name[1] != "-" and len(name) > 2:
            # pip accepts -rfile.txt as well.
            name, value = name[:2], name[2:] + value
        if name in _INCLUDES and value:
            included = os.path.join(os.path.dirname(line.place.file), value)
            wants_constraint = is_constraint or _INCLUDES[name] == "constraint"
            try:
                if "://" in value:
                    raise UsageError("it is on the web, and whygpu does not use the network")
                self._file(included, is_constraint=wants_constraint)
            except UsageError as error:
                self._unread.append(UnreadLine(line.place, f"{value} was not read: {error}"))
        elif name in _SOURCES and value:
            self._sources.append(PackageSource(value, _SOURCES[name], line.place))
        elif name in ("-e", "--editable"):
            reason = "the requirements of the project that it installs were not read"
            self._unread.append(UnreadLine(line.place, reason))
        elif name not in _HARMLESS:
            self._unread.append(UnreadLine(line.place, "this option was not understood"))


def _unquoted(value: str) -> str:
    try:
        words = shlex.split(value)
    except ValueError:
        return value
    return words[0] if len(words) == 1 else value


def _lines(path: str, text: str) -> Iterator[_Line]:
    """Logical lines: a backslash continues a line, and comments do not count."""
    parts: list[str] = []
    start = FileLine(path, 0, "")
    # An empty line at the end completes a line that ends with a backslash.
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        if not parts:
            start = FileLine(path, number, raw.strip())
        clean = "" if raw.lstrip().startswith("#") else raw
        continues = clean.endswith("\\")
        parts.append(clean[:-1] if continues else clean)
        if not continues:
            whole = _COMMENT.sub("", "".join(parts)).strip()
            parts = []
            if whole:
                yield _Line(whole, start)
