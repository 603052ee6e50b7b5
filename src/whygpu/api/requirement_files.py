"""The verb about files of requirements: plan_from."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from whygpu.api.arguments import THIS_PYTHON, checked

if TYPE_CHECKING:
    from whygpu.model.requirement_file import FileAnswer
    from whygpu.model.snapshot import Snapshot

_LARGEST_BYTES = 32 << 20
"""Lock files of large projects have a few megabytes."""


@checked
def plan_from(
    path: str,
    *,
    machine: Snapshot | None = None,
    python: str | None = THIS_PYTHON,
    driver: str | None = None,
    gpu: str | None = None,
    glibc: str | None = None,
    platform: str | None = None,
) -> FileAnswer:
    """Which lines of a requirements, project or lock file cannot use a machine's GPU, and why?

    The options are those of `plan`.

    Example:
        whygpu.plan_from("requirements.txt", driver="535.54", gpu="RTX 4090")
    """
    from whygpu.api.plans import basis_of
    from whygpu.planner.file_judgement import judge_file
    from whygpu.readers.requirement_files import read_requirements

    _require_file(path)
    file = read_requirements(path, _load)
    basis = basis_of(machine, python, driver=driver, gpu=gpu, glibc=glibc, platform=platform)
    return judge_file(file, basis.spec, basis.table)


def _require_file(path: str) -> None:
    """A wrong path is the mistake to report, and not the kind of file that its name describes."""
    from whygpu.errors import UsageError

    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {path}: {why}") from None
    if is_folder:
        example = os.path.join(path, "requirements.txt")
        raise UsageError(f"{path} is a folder; name a file in it, such as {example}")


def _load(path: str) -> str:
    from whygpu.errors import UsageError
    from whygpu.host.files import read_given

    try:
        return read_given(path, _LARGEST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
