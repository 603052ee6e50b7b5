"""Lints one file: its text, its findings, and the comments that suppress them."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.host.files import is_substituted, read_given, read_start
from whygpu.linter.files import STDIN
from whygpu.linter.ignores import Ignores
from whygpu.linter.imported_modules import NO_WRAPPERS, ImportedModules, Wrappers
from whygpu.linter.judge import is_about_gpus, judge, possible, relevant, words_in
from whygpu.linter.neighbours import all_for_1, is_left_over
from whygpu.linter.pins import tensorflow_hint, tensorflow_pin
from whygpu.linter.project_files import DiskFiles, kind_of
from whygpu.linter.settings import Settings
from whygpu.linter.setup_file import analyse_setup, located
from whygpu.linter.text_words import TextWords
from whygpu.model.cause import Cause
from whygpu.model.code_finding import CodeFinding, FileProblem, Located
from whygpu.model.program import Origin, TensorFlowLine, excerpt_of
from whygpu.model.units import size_text
from whygpu.readers import limits
from whygpu.readers.code.evaluate import TooComplex
from whygpu.readers.code.source import (
    Source,
    SourceProblem,
    is_python_2,
    load,
    parse,
    program,
)
from whygpu.readers.code.walk import FindModule


class FileResult(NamedTuple):
    findings: tuple[Located, ...] = ()
    ignored: tuple[Located, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    is_template: bool = False


class Analysis(NamedTuple):
    """The findings in one text, with their edits."""

    source: Source
    found: list[tuple[CodeFinding, str | None]]
    """Each with the reason why it is suppressed, or None."""
    problems: list[FileProblem]


def read(path: str) -> bytes:
    """The content, or one byte more than the limit if it is too large."""
    if path == STDIN:
        return sys.stdin.buffer.read(limits.SOURCE_FILE + 1)
    if is_substituted(path):
        return read_given(path, limits.SOURCE_FILE)
    return read_start(path, limits.SOURCE_FILE + 1)


def analyse(
    path: str,
    content: bytes,
    settings: Settings,
    causes: Sequence[Cause],
    *,
    follows: bool = True,
) -> Analysis:
    """Raises SourceProblem if the content cannot be read as Python.

    `follows`: functions of other files of the project are followed where the program calls them.
    """
    source = load(path, content)
    problems = _broken_cells(source)
    chosen, words, find_module = _search(source, settings.causes_for(path, causes), follows)
    if not chosen and path not in settings.named:
        # Without these words there is nothing to find, whether or not it is valid Python.
        return Analysis(source, [], problems)
    tree = parse(source)
    if not chosen:
        return Analysis(source, [], problems)
    try:
        found, crashes = _judged(source, tree, settings, chosen, words, find_module)
    except RecursionError:
        raise SourceProblem("too-large", "its code is nested too deeply to be analysed") from None
    except TooComplex as error:
        raise SourceProblem("too-large", f"its code cannot be analysed: {error}") from error
    problems += [FileProblem(path, 1, "crashed", crash) for crash in crashes]
    ignores = Ignores(source.text)
    return Analysis(
        source,
        [
            (item, ignores.reason(item.place, item.finding.code, item.finding.cause))
            for item in found
            if item.origin is None or not _is_found_there(item, item.origin, settings, causes)
        ],
        problems,
    )


class _Search(NamedTuple):
    """What to look for in a text."""

    causes: Sequence[Cause] = ()
    words: tuple[str, ...] = ()
    """Those of the text without which the causes have no finding."""
    find_module: FindModule = lambda module, level: None


def _search(source: Source, causes: Sequence[Cause], follows: bool) -> _Search:
    if not is_about_gpus(source.text):
        return _Search()
    text_words = TextWords(source.text)
    imported = ImportedModules(source.path)
    wrappers = imported.called_in(source.text) if follows else NO_WRAPPERS
    if wrappers.names:
        # The functions of other files may be about other frameworks, and the text alone is not
        # the program.
        words = words_in(causes, text_words) + _words_of_wrappers(causes, wrappers)
        return _Search(relevant(causes, words), (*words, *wrappers.names), imported.find)
    candidates = possible(causes, text_words)
    words = words_in(candidates, text_words)
    chosen = relevant(candidates, words, source.text)
    needed = frozenset(word for cause in chosen for word in cause.code_words)
    return _Search(chosen, tuple(word for word in words if word in needed))


def _words_of_wrappers(causes: Sequence[Cause], wrappers: Wrappers) -> tuple[str, ...]:
    return words_in(causes, TextWords(wrappers.text)) if is_about_gpus(wrappers.text) else ()


def _is_found_there(
    item: CodeFinding, origin: Origin, settings: Settings, causes: Sequence[Cause]
) -> bool:
    """Whether the file of the function has the finding by itself, without this call."""
    try:
        content = read(origin.path)
        alone = analyse(origin.path, content, settings, causes, follows=False)
    except (OSError, SourceProblem):
        return True
    return any(
        other.finding.code == item.finding.code and other.place.start[0] == origin.line
        for other, _ in alone.found
    )


def _judged(
    source: Source,
    tree: ast.Module,
    settings: Settings,
    causes: Sequence[Cause],
    words: Sequence[str],
    find_module: FindModule,
) -> tuple[list[CodeFinding], list[str]]:
    folder = os.path.dirname(source.path) or os.curdir
    in_project = os.path.isfile(source.path)
    target = settings.tensorflow or (
        tensorflow_pin(folder) if "tensorflow" in source.text and in_project else None
    )
    if target == "2" and not settings.tensorflow and is_left_over(source.path, source.text):
        target = "unknown"
    hint = (lambda: _hinted(source.path)) if in_project else (lambda: None)
    return judge(program(source, tree, target, hint, words, find_module), causes)


def _hinted(path: str) -> TensorFlowLine | None:
    """The TensorFlow version that the README, or else neighbouring files, suggest.

    A README that names TensorFlow 2 does not say that each file with names of TensorFlow 1 is for
    2: examples and older files stay in a project that moves on.
    """
    hint = tensorflow_hint(os.path.dirname(path) or os.curdir)
    if hint == "2":
        return None
    return "1" if all_for_1(path) else hint


def _broken_cells(source: Source) -> list[FileProblem]:
    if source.notebook is None:
        return []
    return [
        FileProblem(
            source.path,
            1,
            "python2" if is_python_2("\n".join(cell.lines), error) else "syntax",
            f"cell {cell.number} was skipped, because it cannot be parsed: {error.msg}",
            cell.number,
        )
        for cell, error in source.notebook.broken
    ]


def lint_content(
    path: str, content: bytes, settings: Settings, causes: Sequence[Cause]
) -> FileResult:
    if kind_of(path) is not None:
        return _lint_setup(path, content, settings, causes)
    try:
        analysis = analyse(path, content, settings, causes)
    except SourceProblem as problem:
        return FileResult(
            problems=(FileProblem(path, problem.line, problem.kind, problem.message),)
        )
    lines = analysis.source.text.split("\n") if analysis.found else []
    located = [
        (locate(analysis.source, lines, item, reason), reason) for item, reason in analysis.found
    ]
    return FileResult(
        tuple(item for item, reason in located if reason is None),
        tuple(item for item, reason in located if reason is not None),
        tuple(analysis.problems),
    )


def setup_text(content: bytes) -> str | None:
    """The text of a file that is not Python; None if it is too large."""
    if len(content) > limits.SOURCE_FILE:
        return None
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _lint_setup(
    path: str, content: bytes, settings: Settings, causes: Sequence[Cause]
) -> FileResult:
    text = setup_text(content)
    if text is None:
        message = f"it is larger than {size_text(limits.SOURCE_FILE)}"
        return FileResult(problems=(FileProblem(path, 1, "too-large", message),))
    analysis = analyse_setup(path, text, settings, causes)
    disk = DiskFiles()
    texts = {path: text}
    shown = []
    for item, reason in analysis.found:
        file = item.place.file
        texts.setdefault(file, disk.read(file) or "")
        shown.append(located(item, reason, texts[file]))
    return FileResult(
        tuple(item for item in shown if item.reason is None),
        tuple(item for item in shown if item.reason is not None),
        analysis.problems,
        analysis.is_template,
    )


def lint_file(path: str, settings: Settings, causes: Sequence[Cause]) -> FileResult:
    try:
        content = read(path)
    except OSError as error:
        problem = FileProblem(path, 1, "unreadable", f"it cannot be read: {error.strerror}")
        return FileResult(problems=(problem,))
    return lint_content(path, content, settings, causes)


def locate(source: Source, lines: Sequence[str], item: CodeFinding, reason: str | None) -> Located:
    start, end = item.place
    cell = None
    text = lines[start[0] - 1]
    finding = item.finding
    if source.notebook is not None:
        last, end = source.notebook.position(end)
        first = source.notebook.cell_of(start[0])
        text = first.lines[start[0] - first.first_line]
        cell, start = source.notebook.position(start)
        end = end if last == cell else start
        where = f"{source.path}:cell {cell}:{start[0]}:{start[1]}"
        finding = finding._replace(
            evidence=tuple(evidence._replace(where=where) for evidence in finding.evidence)
        )
    shown = excerpt_of(text, start[1])
    return Located(
        finding,
        source.path,
        start[0],
        start[1],
        end[0],
        end[1],
        cell,
        shown.text,
        bool(item.edits),
        reason,
        shown.column,
    )
