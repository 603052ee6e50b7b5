"""Mend files where they are: each one as a whole, and only files inside the folders given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.host.writing import FileChanged, edit_file
from whygpu.linter.fix import fixed
from whygpu.linter.one_file import read
from whygpu.linter.settings import Settings
from whygpu.model.cause import Cause
from whygpu.model.code_finding import NotFixed

_MOST_TRIES = 3
"""Somebody else may write the same file; two runs of whygpu agree after the second try."""


class FixResult(NamedTuple):
    mended: int
    """How many findings were mended, in all files."""
    left: tuple[NotFixed, ...]


def fix_files(
    paths: Sequence[str], given: Sequence[str], settings: Settings, causes: Sequence[Cause]
) -> FixResult:
    """`given` are the files and folders in which `paths` were found."""
    folders = [_real_folder(path) for path in given]
    mended = 0
    left: list[NotFixed] = []
    for path in paths:
        try:
            mended += _fix(path, folders, settings, causes)
        except _NotChanged as reason:
            left.append(NotFixed(path, str(reason)))
    return FixResult(mended, tuple(left))


class _NotChanged(Exception):
    """Why a file was left as it is."""


def _fix(path: str, folders: Sequence[str], settings: Settings, causes: Sequence[Cause]) -> int:
    for _ in range(_MOST_TRIES):
        try:
            content = read(path)
        except OSError:
            # The report says so, as it does without --fix.
            return 0
        result = fixed(path, content, settings, causes)
        if result.content == content:
            return 0
        _require_inside(path, folders)
        try:
            edit_file(path, content, result.content)
        except FileChanged:
            continue
        except OSError as error:
            raise _NotChanged(error.strerror or str(error)) from error
        return result.mended
    raise _NotChanged("somebody else keeps changing it")


def _require_inside(path: str, folders: Sequence[str]) -> None:
    real = os.path.realpath(path)
    if not any(os.path.commonpath((real, folder)) == folder for folder in folders):
        raise _NotChanged(
            f"it is a link to {real}, outside of what was given; to change that file, name it"
        )


def _real_folder(path: str) -> str:
    """The folder that was given, or the one in which the file that was given lies."""
    return os.path.realpath(path if os.path.isdir(path) else os.path.dirname(path))
