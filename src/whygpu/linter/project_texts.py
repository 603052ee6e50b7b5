"""The texts of a whole project that may say how one of its files is used.

They are read only for a file with something to report, which is rare.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

from whygpu.host.files import read_start
from whygpu.linter.project_files import DiskFiles, ProjectFiles
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.requirement_file import FileLine

_MOST_FILES = 5000
_MOST_NAMES = 20_000
_MOST_CHARACTERS = 32 << 20
"""Of all texts together, which are kept while the files of a project are linted."""
_LARGEST = 1 << 19
"""Characters of a text; larger ones are data."""
_HIGHEST = 6
"""How many folders above a file may be the top of its project."""
_TEXT = re.compile(
    r"\A(?:.*\.(?:md|rst|example|sample|dist|sh|bash|mk|ya?ml|json|toml|py|cfg|ini|bat|ps1|env|sbatch|slurm|pbs|tf|hcl)"
    r"|makefile|readme[\w.-]*|justfile|jenkinsfile|\.env[\w.-]*|install[\w.-]*|[\w-]*dockerfile[\w.-]*)",
    re.IGNORECASE,
)
_DATA = re.compile(
    r"\A.*\.(?:png|jpe?g|gif|svg|csv|tsv|npy|npz|pkl|h5|pt|pth|bin|onnx|zip|gz|tar|pdf|txt|ipynb"
    r"|c|cc|cpp|cu|h|hpp|js|ts|tsx|jsx|css|html|lock|go|rs|java|wav|mp[34]|ttf|woff2?|so|xml)",
    re.IGNORECASE,
)
_SKIPPED = frozenset(
    {".git", "node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", ".idea"}
)
_TOP = frozenset({".git", "pyproject.toml", "setup.py"})


_LONGEST_LINE = 400
_COMMENT = re.compile(r"^\s{0,200}(?:#|//|REM\b)|\s(?:#|//)\s", re.IGNORECASE)
_PROSE = re.compile(r"\.(?:md|rst|json)$|readme[^/\\]*$", re.IGNORECASE)
_ADVISES_AGAINST = re.compile(r"\b(?:not|never|don['’]?t|avoid|instead of)\b", re.IGNORECASE)
_MOST_PATTERNS = 64
"""Some patterns contain names of the linted file, which change while somebody types."""


@runtime_checkable
class StampedFiles(ProjectFiles, Protocol):
    """Files that are looked at again and again, as in an editor."""

    def stamp(self, path: str) -> object:
        """Equal to an earlier one if the file has not changed since; None if that is not known."""


class _File:
    """A text, with whether each pattern was found in it."""

    def __init__(self, path: str, stamp: object, text: str) -> None:
        self.path, self.stamp, self.text = path, stamp, text
        self._found: dict[re.Pattern[str], bool] = {}

    def has(self, pattern: re.Pattern[str]) -> bool:
        if pattern not in self._found:
            if len(self._found) >= _MOST_PATTERNS:
                self._found.clear()
            self._found[pattern] = pattern.search(self.text) is not None
        return self._found[pattern]


class _Texts:
    """The texts of a project, with what was looked for in them."""

    def __init__(
        self,
        top: str,
        files: ProjectFiles,
        read: Callable[[str], str | None],
        stamp: Callable[[str], object] = lambda path: None,
        kept: Mapping[str, _File] = MappingProxyType({}),
    ) -> None:
        """`kept` are files that were read before, with the stamps that they had then."""
        paths = list(itertools.islice(_paths(top, files), _MOST_FILES + 1))
        self.is_complete = len(paths) <= _MOST_FILES
        self.files: dict[str, _File] = {}
        left = _MOST_CHARACTERS
        for path in paths[:_MOST_FILES]:
            now, before = stamp(path), kept.get(path)
            if before is None or now is None or before.stamp != now:
                before = _File(path, now, read(path) or "")
            if len(before.text) > left:
                self.is_complete = False
                return
            if len(before.text) <= _LARGEST:
                self.files[path] = before
                left -= len(before.text)

    def having(self, pattern: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
        """The path and the text of each file with a match."""
        return tuple((each.path, each.text) for each in self.files.values() if each.has(pattern))


@lru_cache(maxsize=2)
def _on_disk(top: str, folder: str) -> _Texts:
    """Files with findings are mostly in the same project. Paths are relative to `folder`."""
    return _Texts(top, DiskFiles(), _from_disk)


def _from_disk(path: str) -> str | None:
    """Not cached, unlike the few files that other files name."""
    try:
        content = read_start(path, _LARGEST + 1)
    except (OSError, ValueError):
        return None
    return content.decode("utf-8", "replace") if len(content) <= _LARGEST else None


def forget() -> None:
    """Read projects again that were read before: they may have changed since."""
    _on_disk.cache_clear()


class _Kept(NamedTuple):
    folder: str
    """Paths are relative to it."""
    files: Mapping[str, _File]


_last = _Kept("", {})
"""What was read for the last file that was linted in an editor: mostly, only that file changes."""


def _in_editor(top: str, files: StampedFiles) -> _Texts:
    global _last
    folder = os.getcwd()
    kept = _last.files if _last.folder == folder else {}
    texts = _Texts(top, files, files.read, files.stamp, kept)
    _last = _Kept(folder, texts.files)
    return texts


class ProjectTexts:
    """The texts of the project of one file."""

    def __init__(self, path: str, files: ProjectFiles | StampedFiles | None = None) -> None:
        """`files` are those of the disk if they are not given."""
        self._path = os.path.normpath(path)
        self._files = files
        self._read: _Texts | None = None

    def first(self, pattern: re.Pattern[str]) -> Observed[FileLine]:
        """The first match in another file of the project; Unknown if not all could be read."""
        for path, text in self.having(pattern):
            matches = (match for match in pattern.finditer(text) if _is_meant(path, text, match))
            match = next(matches, None)
            if match is not None:
                line = text.count("\n", 0, match.start()) + 1
                written = text.split("\n")[line - 1].strip()
                return Known(FileLine(path, line, written), f"{path}:{line}")
        return self.without_match()

    def without_match(self) -> Absent | Unknown:
        """What it shows if no file that was read has a match."""
        if not self._texts().is_complete:
            return Unknown("the project has more files than were read")
        return Absent("the files of the project")

    def having(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
        """The path and the text of each other file with a match."""
        return (each for each in self._texts().having(pattern) if each[0] != self._path)

    def _texts(self) -> _Texts:
        if self._read is None:
            files = self._files or DiskFiles()
            top = _top(self._path, files)
            if self._files is None:
                self._read = _on_disk(top, os.getcwd())
            elif isinstance(files, StampedFiles):
                self._read = _in_editor(top, files)
            else:
                self._read = _Texts(top, files, files.read)
        return self._read


def _is_meant(path: str, text: str, match: re.Match[str]) -> bool:
    """Whether a match is neither in a comment nor what a page advises against."""
    start = match.start()
    line = text.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1
    before = text[max(line, start - _LONGEST_LINE) : start]
    if _COMMENT.search(before):
        return False
    return _PROSE.search(path) is None or _ADVISES_AGAINST.search(before) is None


def _top(path: str, files: ProjectFiles) -> str:
    """The folder of the project; that of the file if nothing tells."""
    folder = own = os.path.dirname(path) or os.curdir
    for _ in range(_HIGHEST):
        if not _TOP.isdisjoint(files.names(folder)) or folder in (os.curdir, os.sep):
            return folder
        folder = os.path.dirname(folder) or os.curdir
    return own


def _paths(top: str, files: ProjectFiles) -> Iterator[str]:
    folders, seen = [top], 0
    while folders and seen < _MOST_NAMES:
        folder = folders.pop(0)
        for name in files.names(folder):
            seen += 1
            path = os.path.normpath(os.path.join(folder, name))
            if name in _SKIPPED:
                continue
            if _TEXT.fullmatch(name):
                yield path
            elif not _DATA.fullmatch(name):
                folders.append(path)
