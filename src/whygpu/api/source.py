"""Verbs about source code: lint and lint_patch."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from whygpu.api.arguments import checked
from whygpu.errors import Option, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from whygpu.linter.settings import Settings
    from whygpu.model.cause import Cause
    from whygpu.model.code_finding import LintReport, SourcePatch, TextReport
    from whygpu.model.machine_spec import MachineSpec
    from whygpu.model.requirement_file import RequirementsFile, RequirementVerdict
    from whygpu.model.snapshot import Snapshot
    from whygpu.planner.candidates import Table

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
    Codes = str | Iterable[str]


@checked
def lint(
    what: Paths,
    *,
    select: Codes | None = None,
    ignore: Codes | None = None,
    tensorflow: str | None = None,
    driver: str | None = None,
    gpu: str | None = None,
    machine: Snapshot | None = None,
    fix: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> LintReport:
    """Which lines of a program mishandle devices?

    `what` is a file, a folder, a notebook, or several of them. A text with a line break in it is
    source code. `select` and `ignore` are codes of causes. `tensorflow` is the version that the
    code is for, if its own settings do not say it. `driver` and `gpu`, or the snapshot `machine`,
    say which machine images and requirements are for. `fix=True` changes the files where that is
    safe.

    Example:
        whygpu.lint("train.py")
        whygpu.lint("requirements.txt", driver="535.54", gpu="RTX 5090")
        whygpu.lint("import os, torch\\ntorch.ones(1).cuda()\\n")
    """
    from whygpu.linter import lint_files, one_file
    from whygpu.linter.files import STDIN

    place = _machine(driver, gpu, machine)
    if isinstance(what, str) and "\n" in what:
        if fix:
            raise UsageError("there is no file to change; give a path", option="fix", value=True)
        chosen = _chosen([], select, ignore, tensorflow, place)
        result = one_file.lint_content("<source>", what.encode(), chosen.settings, chosen.causes)
        return lint_files.report(1, [result])
    given = _paths(what)
    chosen = _chosen(given, select, ignore, tensorflow, place)
    if not fix:
        return lint_files.lint_files(chosen.files, chosen.settings, on_progress)
    if STDIN in chosen.files:
        raise UsageError(
            "standard input cannot be changed; --diff, or lint_patch() in Python, shows the change",
            option="fix",
            value=True,
        )
    if chosen.settings.problem is not None:
        # They may exclude files from changes.
        path, _, _, why, _ = chosen.settings.problem
        raise UsageError(f"nothing is changed, because of {path}: {why}")
    from whygpu.linter.fix_files import fix_files

    fixed = fix_files(chosen.files, given, chosen.settings, chosen.causes)
    report = lint_files.lint_files(chosen.files, chosen.settings, on_progress)
    return report._replace(fixes=fixed.fixed, not_fixed=fixed.left)


@checked
def lint_patch(
    what: Paths,
    *,
    select: Codes | None = None,
    ignore: Codes | None = None,
    tensorflow: str | None = None,
    driver: str | None = None,
    gpu: str | None = None,
    machine: Snapshot | None = None,
) -> SourcePatch:
    """What `lint(..., fix=True)` would change, as a patch for `git apply`; nothing is changed.

    Example:
        print(whygpu.lint_patch("train.py").content.decode())
    """
    from whygpu.linter.fix import fixed
    from whygpu.linter.one_file import read
    from whygpu.linter.patch import patch
    from whygpu.model.code_finding import FileProblem, SourcePatch

    place = _machine(driver, gpu, machine)
    chosen = _chosen(_paths(what), select, ignore, tensorflow, place)
    patches: list[bytes] = []
    unreadable: list[FileProblem] = []
    for path in chosen.files:
        try:
            content = read(path)
        except OSError as error:
            unreadable.append(FileProblem(path, 1, "unreadable", error.strerror or str(error)))
            continue
        result = fixed(path, content, chosen.settings, chosen.causes).content
        if result != content:
            patches.append(patch(path, content, result))
    return SourcePatch(b"".join(patches), tuple(unreadable))


def lint_text(
    path: str, text: str, open_texts: Mapping[str, str], *, is_python: bool = False
) -> TextReport:
    """What lint finds in a text that an editor has open as this file.

    `open_texts` are the other files that are open, by their absolute paths: what they hold now
    counts, not what is on the disk. `is_python`: take it for Python, whatever its name.
    """
    from whygpu.linter import open_text

    open_text.forget_the_disk()
    causes = lint_causes()
    settings = _settings([path], causes)
    return open_text.lint_text(path, text, settings, causes, open_texts, is_python=is_python)


def fixed_text(path: str, text: str) -> str:
    """The same text with every fix that `lint(..., fix=True)` would make."""
    from whygpu.linter import open_text

    open_text.forget_the_disk()
    causes = lint_causes()
    return open_text.fixed_text(path, text, _settings([path], causes), causes)


def lint_causes() -> tuple[Cause, ...]:
    """The causes that lint looks for."""
    from whygpu.linter import lint_files

    return lint_files.lint_causes()


def _judged_requirements(
    file: RequirementsFile, machine: MachineSpec
) -> tuple[RequirementVerdict, ...]:
    """The planner's verdicts on the requirements of an image or a file."""
    from whygpu.planner.file_judgement import judge_file

    return judge_file(file, machine, _table()).verdicts


@lru_cache(maxsize=1)
def _table() -> Table:
    from whygpu.api.release_table import current_table
    from whygpu.planner.candidates import Table

    rows, edition = current_table()
    return Table(rows.versions_of, edition)


def _machine(driver: str | None, gpu: str | None, taken: Snapshot | None) -> MachineSpec | None:
    """The machine that files are for, as far as the user described it; None if not at all."""
    if driver is None and gpu is None and taken is None:
        return None
    from whygpu.linter.image_setup import machine_with
    from whygpu.planner.machine import described, from_snapshot

    start = machine_with("") if taken is None else from_snapshot(taken)
    return described(start, driver=driver, gpu=gpu)


class _Chosen(NamedTuple):
    files: Sequence[str]
    settings: Settings
    causes: tuple[Cause, ...]


def _paths(what: Paths) -> list[str]:
    given = [what] if isinstance(what, str | os.PathLike) else what
    try:
        return [os.fspath(path) for path in given]
    except TypeError:
        raise UsageError(
            f"expected a path, several paths, or source code, received {type(what).__name__}",
            option="what",
        ) from None


def _chosen(
    paths: Sequence[str],
    select: Codes | None,
    ignore: Codes | None,
    tensorflow: str | None,
    machine: MachineSpec | None,
) -> _Chosen:
    """The files and what to look for in them: the project's settings, overridden by arguments."""
    from whygpu.linter import files, settings

    causes = lint_causes()
    chosen = _settings(paths, causes)._replace(named=frozenset(paths), machine=machine)
    if select is not None:
        chosen = chosen._replace(select=_codes(select, "select", causes))
    if ignore is not None:
        chosen = chosen._replace(ignore=_codes(ignore, "ignore", causes))
    if tensorflow is not None:
        line = settings.tensorflow_line(tensorflow, Option("tensorflow", tensorflow))
        chosen = chosen._replace(tensorflow=line)
    return _Chosen(files.find(paths, chosen), chosen, causes)


def _settings(paths: Sequence[str], causes: Sequence[Cause]) -> Settings:
    """The settings of the project that these paths belong to."""
    from whygpu.linter import settings

    chosen = settings.load(paths, causes) if paths else settings.Settings()
    return chosen._replace(judge=_judged_requirements)


def _codes(given: Codes, option: str, causes: Sequence[Cause]) -> tuple[str, ...]:
    from whygpu.linter.settings import check_codes

    words = given.replace(",", " ").split() if isinstance(given, str) else given
    codes = tuple(words)
    check_codes(codes, causes, Option(option, given if isinstance(given, str) else codes))
    return codes
