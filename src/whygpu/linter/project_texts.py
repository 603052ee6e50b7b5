"""The texts of a whole project that may say how one of its files is used.

They are read only for a file with something to report, which is rare.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.linter.project_files import ProjectFiles
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.requirement_file import FileLine

_MOST_FILES = 2000
_MOST_NAMES = 20_000
_LARGEST = 1 << 19
"""Characters of a text; larger ones are data."""
_HIGHEST = 6
"""How many folders above a file may be the top of its project."""
_TEXT = re.compile(
    r"(?:.*\.(?:md|rst|example|sample|dist|sh|bash|mk|ya?ml|json|toml|py|cfg|ini|bat|ps1|env|sbatch|slurm|pbs|tf|hcl)"
    r"|makefile|readme[\w.-]*|justfile|jenkinsfile|\.env[\w.-]*|install[\w.-]*|[\w-]*dockerfile[\w.-]*)",
    re.IGNORECASE,
)
_DATA = re.compile(
    r".*\.(?:png|jpe?g|gif|svg|csv|tsv|npy|npz|pkl|h5|pt|pth|bin|onnx|zip|gz|tar|pdf|txt|ipynb"
    r"|c|cc|cpp|cu|h|hpp|js|ts|tsx|jsx|css|html|lock|go|rs|java|wav|mp[34]|ttf|woff2?|so|xml)",
    re.IGNORECASE,
)
_SKIPPED = frozenset(
    {".git", "node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", ".idea"}
)
_TOP = frozenset({".git", "pyproject.toml", "setup.py"})


class _Walk(NamedTuple):
    found: tuple[tuple[str, str], ...]
    """Each path with its text."""
    is_complete: bool


class ProjectTexts:
    """The texts of the project of one file."""

    def __init__(self, path: str, files: ProjectFiles) -> None:
        self._path = os.path.normpath(path)
        self._files = files
        self._walked: _Walk | None = None
        self._found: dict[re.Pattern[str], tuple[tuple[str, str], ...]] = {}

    def first(self, pattern: re.Pattern[str]) -> Observed[FileLine]:
        """The first match in another file of the project; Unknown if not all could be read."""
        for path, text in self.having(pattern):
            match = pattern.search(text)
            if match is not None:
                line = text.count("\n", 0, match.start()) + 1
                written = text.split("\n")[line - 1].strip()
                return Known(FileLine(path, line, written), f"{path}:{line}")
        if not self._walk().is_complete:
            return Unknown("the project has more files than were read")
        return Absent("the files of the project")

    def having(self, pattern: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
        """The path and the text of each other file with a match."""
        if pattern not in self._found:
            self._found[pattern] = tuple(
                (path, text)
                for path, text in self._walk().found
                if path != self._path and pattern.search(text)
            )
        return self._found[pattern]

    def _walk(self) -> _Walk:
        if self._walked is None:
            paths = list(self._paths(self._top()))
            texts = ((path, self._files.read(path) or "") for path in paths[:_MOST_FILES])
            found = tuple((path, text) for path, text in texts if len(text) <= _LARGEST)
            self._walked = _Walk(found, len(paths) <= _MOST_FILES)
        return self._walked

    def _top(self) -> str:
        """The folder of the project; that of the file if nothing tells."""
        folder = own = os.path.dirname(self._path) or os.curdir
        for _ in range(_HIGHEST):
            names = self._files.names(folder)
            if not _TOP.isdisjoint(names) or folder in (os.curdir, os.sep):
                return folder
            folder = os.path.dirname(folder) or os.curdir
        return own

    def _paths(self, top: str) -> Iterator[str]:
        folders, seen = [top], 0
        while folders and seen < _MOST_NAMES:
            folder = folders.pop(0)
            for name in self._files.names(folder):
                seen += 1
                path = os.path.normpath(os.path.join(folder, name))
                if name in _SKIPPED:
                    continue
                if _TEXT.fullmatch(name):
                    yield path
                elif not _DATA.fullmatch(name):
                    folders.append(path)
