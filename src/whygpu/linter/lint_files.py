"""Lints many files, on all cores if there are enough files."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from whygpu.causes import catalogue
from whygpu.host.systems import cores
from whygpu.host.worker_pool import WorkerPool
from whygpu.linter.one_file import FileResult, lint_file
from whygpu.linter.project_files import kind_of
from whygpu.linter.settings import Settings
from whygpu.model.cause import Cause
from whygpu.model.code_finding import FileProblem, LintReport, Located

OnProgress = Callable[[int, int], None]
"""The number of finished files, and the total."""

_WORTH_A_POOL = 48
"""Starting processes takes as long as linting this many files."""
_LARGEST_CHUNK = 64
_FILES_PER_COLLECTION = 1024
MOST_REPORTED = 10_000
"""The most findings, and the most problems, of one report; each takes some kilobytes."""


def lint_causes() -> tuple[Cause, ...]:
    return tuple(
        cause
        for cause in catalogue()
        if cause.code_detector is not None or cause.setup_detector is not None
    )


def lint_files(
    files: Sequence[str], settings: Settings, on_progress: OnProgress | None = None
) -> LintReport:
    causes = lint_causes()
    if len(files) < _WORTH_A_POOL or cores() < 2:
        results: Iterable[FileResult] = (lint_file(file, settings, causes) for file in files)
        made = report(len(files), _counted(results, len(files), on_progress))
    else:
        with WorkerPool(partial(_start_worker, settings)) as pool:
            results = pool.results(_work, files, chunk=_chunk(len(files)))
            made = report(len(files), _counted(results, len(files), on_progress))
    problem = settings.problem
    if problem is None:
        return made
    others = tuple(each for each in made.problems if each.path != problem.path)
    # A file of settings that is not among the linted ones is one more that could not be read.
    count = len(files) + (problem.path not in map(os.path.relpath, files))
    return made._replace(files=count, problems=(problem, *others))


def _chunk(count: int) -> int:
    """How many neighbouring files a process gets at once.

    Files of a folder share requirements and imported modules, which each process reads for itself.
    """
    return max(1, min(_LARGEST_CHUNK, count // (8 * cores())))


def report(count: int, results: Iterable[FileResult]) -> LintReport:
    """One report from the results of the files, in the same order.

    Findings beyond the limit of a report are only counted.
    """
    findings: list[Located] = []
    ignored: list[Located] = []
    problems: list[FileProblem] = []
    total = templates = 0
    seen: dict[_Key, int] = {}
    for result in results:
        # Several Dockerfiles may install the file of requirements that has the defect.
        templates += result.is_template
        for item in result.findings:
            key = _key(item)
            if key in seen:
                findings[seen[key]] = _stronger(findings[seen[key]], item)
                continue
            total += 1
            if len(findings) < MOST_REPORTED:
                if key is not None:
                    seen[key] = len(findings)
                findings.append(item)
        total += len(result.problems)
        ignored += result.ignored[: MOST_REPORTED - len(ignored)]
        problems += result.problems[: MOST_REPORTED - len(problems)]
    left_out = total - len(findings) - len(problems)
    return LintReport(
        count,
        tuple(findings),
        tuple(ignored),
        tuple(problems),
        left_out=left_out,
        templates=templates,
    )


_Key = tuple[str, int, int, str] | None


def _key(item: Located) -> _Key:
    """What two findings at one place have in common; None for Python, where each is another."""
    if item.cell is not None or kind_of(item.path) is None:
        return None
    return (os.path.normpath(item.path), item.line, item.column, item.finding.code)


def _stronger(one: Located, other: Located) -> Located:
    """What is a note for an image alone may be certain for the service that runs it."""
    is_note = one.finding.severity == "info"
    return other if is_note and other.finding.severity != "info" else one


def _counted(
    results: Iterable[FileResult], total: int, on_progress: OnProgress | None
) -> Iterator[FileResult]:
    for done, result in enumerate(results, 1):
        if on_progress is not None:
            on_progress(done, total)
        yield result


_worker_settings = Settings()
_worker_causes: tuple[Cause, ...] = ()


def _start_worker(settings: Settings) -> None:
    global _worker_settings, _worker_causes
    _worker_settings, _worker_causes = settings, lint_causes()
    gc.collect()
    gc.freeze()
    gc.disable()


def _work(file: str) -> FileResult:
    result = lint_file(file, _worker_settings, _worker_causes)
    _collect_sometimes()
    return result


_files_since_collection = 0


def _collect_sometimes() -> None:
    """Search for cycles after some files only.

    Syntax trees are thousands of objects without a cycle. Python would search them several times
    for each file, which takes longer than building them.
    """
    global _files_since_collection
    _files_since_collection += 1
    if _files_since_collection >= _FILES_PER_COLLECTION:
        _files_since_collection = 0
        gc.collect()
