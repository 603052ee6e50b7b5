"""Fixes files in place: each file completely or not at all, and only inside the given folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.host.writing import FileChanged, edit_file
from whygpu.linter.fix import fixed
from whygpu.linter.one_file import read
from whygpu.linter.settings import Settings
from whygpu.model.cause import Cause
from whygpu.model.code_finding import FixedFinding, NotFixed
from whygpu.model.finding import Finding

_MOST_TRIES = 3
"""Another program may write the same file. Two runs of whygpu agree after the second attempt."""


class FixResult(NamedTuple):
    fixed: tuple[FixedFinding, ...]
    left: tuple[NotFixed, ...]


def fix_files(
    paths: Sequence[str], given: Sequence[str], settings: Settings, causes: Sequence[Cause]
) -> FixResult:
    """`given`: the files and folders that the user named and that contain `paths`."""
    folders = [_real_folder(path) for path in given]
    done: list[FixedFinding] = []
    left: list[NotFixed] = []
    for path in paths:
        try:
            found = _fix(path, folders, settings, causes)
            done += [FixedFinding(path, finding.code, finding.cause) for finding in found]
        except _NotChanged as reason:
            left.append(NotFixed(path, str(reason)))
    return FixResult(tuple(done), tuple(left))


class _NotChanged(Exception):
    """Why a file was not changed."""


def _fix(
    path: str, folders: Sequence[str], settings: Settings, causes: Sequence[Cause]
) -> tuple[Finding, ...]:
    """Fix one file. Returns the findings that it does not have any more."""
    for _ in range(_MOST_TRIES):
        try:
            content = read(path)
        except OSError:
            # The report says so, as it does without --fix.
            return ()
        result = fixed(path, content, settings, causes)
        if result.content == content:
            return ()
        _require_inside(path, folders)
        try:
            edit_file(path, content, result.content)
        except FileChanged:
            continue
        except OSError as error:
            raise _NotChanged(error.strerror or str(error)) from error
        return result.findings
    raise _NotChanged("another program keeps changing it")


def _require_inside(path: str, folders: Sequence[str]) -> None:
    real = os.path.realpath(path)
    if not any(os.path.commonpath((real, folder)) == folder for folder in folders):
        raise _NotChanged(
            f"it is a link to {real}, outside the given folders; to change that file, name it"
        )


def _real_folder(path: str) -> str:
    """The given folder, or the folder of the given file."""
    return os.path.realpath(path if os.path.isdir(path) else os.path.dirname(path))
