"""Readers for files that say which packages a project installs: one module for each format.

A reader turns text into a `RequirementsFile`. It does not judge, and it opens no file itself:
`load` returns the text of a file, also of one that the first one includes, or raises UsageError.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module

from whygpu.errors import UsageError
from whygpu.model.requirement_file import FileFormat, RequirementsFile

Load = Callable[[str], str]

_READERS = {
    "requirements.txt": ("requirements_txt", "read"),
    "pyproject.toml": ("pyproject", "read"),
    "environment.yml": ("conda_environment", "read"),
    "uv.lock": ("toml_locks", "read_uv"),
    "poetry.lock": ("toml_locks", "read_poetry"),
    "pdm.lock": ("toml_locks", "read_pdm"),
    "pixi.lock": ("pixi_lock", "read"),
    "conda-lock.yml": ("conda_lock", "read"),
}
_NAMES: tuple[tuple[str, tuple[str, ...], FileFormat], ...] = (
    ("pyproject", (".toml",), "pyproject.toml"),
    ("uv", (".lock",), "uv.lock"),
    ("poetry", (".lock",), "poetry.lock"),
    ("pdm", (".lock",), "pdm.lock"),
    ("pixi", (".lock",), "pixi.lock"),
    ("", ("conda-lock.yml", "conda-lock.yaml"), "conda-lock.yml"),
    ("", (".yml", ".yaml"), "environment.yml"),
    ("", (".txt", ".in"), "requirements.txt"),
)
"""How the names of the files begin and end."""


def format_of(path: str) -> FileFormat:
    """The format of a file, by its name; raises UsageError if whygpu does not read it."""
    name = os.path.basename(path).lower()
    for start, ends, kind in _NAMES:
        if name.startswith(start) and name.endswith(ends):
            return kind
    known = ", ".join(_READERS)
    raise UsageError(f"{path}: whygpu does not read this kind of file; it reads {known}")


def read_requirements(path: str, load: Load) -> RequirementsFile:
    """What a file asks for. Raises UsageError if it cannot be read."""
    module, function = _READERS[format_of(path)]
    read: Callable[[str, Load], RequirementsFile] = getattr(
        import_module(f"{__name__}.{module}"), function
    )
    return read(path, load)
