"""Finds the files to lint: named files, and in folders those that lint can read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from whygpu.errors import UsageError
from whygpu.host.files import read_start
from whygpu.linter.project_files import kind_of
from whygpu.linter.settings import Settings
from whygpu.readers import limits

STDIN = "-"
_ENDINGS = (".py", ".pyw", ".ipynb")
_SIGNS = {
    "yaml": (b"apiVersion",),
    "workflow": (b"nvidia", b"gpu", b"cuda", b"torch", b"tensorflow", b"jax"),
    "job": (b"#SBATCH", b"#PBS", b"#BSUB"),
}
"""Words without which a file of this kind is not for lint."""
_HIDDEN = frozenset({".devcontainer", ".github", ".gitlab"})
"""Folders that are read although their names begin with a dot."""
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "__pypackages__"})


def find(paths: Sequence[str], settings: Settings) -> list[str]:
    """Each file once, in order. A named file is included whatever its suffix."""
    found: dict[str, None] = {}
    for path in paths:
        if path == STDIN:
            found[path] = None
        elif os.path.isdir(path):
            found.update(dict.fromkeys(_walk(path, settings)))
        elif os.path.lexists(path):
            if not settings.excludes(path):
                found[path] = None
        else:
            raise UsageError(f"{path} does not exist; name files, folders or notebooks")
    return list(found)


def is_for_lint(path: str, content: bytes) -> bool:
    """Whether lint reads a file with this name and content if it comes across it in a folder."""
    return path.endswith(_ENDINGS) or _is_setup(path, lambda: content)


def _is_setup(path: str, read: Callable[[], bytes]) -> bool:
    """Whether it is a file, other than Python, that may decide about a GPU."""
    kind = kind_of(path)
    if kind not in _SIGNS:
        return kind is not None
    try:
        content = read()
    except OSError:
        return False
    return any(sign in content for sign in _SIGNS[kind])


def _start(path: str) -> bytes:
    return read_start(path, limits.SOURCE_FILE)


def _walk(folder: str, settings: Settings) -> Iterator[str]:
    unreadable: list[str] = []
    for place, folders, files in os.walk(folder, onerror=lambda e: unreadable.append(e.filename)):
        folders[:] = sorted(
            name
            for name in folders
            if (not name.startswith(".") or name in _HIDDEN)
            and name not in _SKIPPED
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
            and not settings.excludes(os.path.join(place, name))
        )
        for name in sorted(files):
            path = os.path.join(place, name)
            wanted = name.endswith(_ENDINGS) or _is_setup(path, partial(_start, path))
            if wanted and not settings.excludes(path):
                yield path.removeprefix("./")
    # Include them like files, so that the report says that they were not checked.
    yield from unreadable
