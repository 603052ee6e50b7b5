"""Lints the text of a file as an editor has it open, which may differ from the file on the disk."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Mapping, Sequence

from whygpu.linter import imported_modules, neighbours, pins, project_files, project_texts
from whygpu.linter.files import is_for_lint
from whygpu.linter.fix import fixed, replaced
from whygpu.linter.one_file import analyse, locate
from whygpu.linter.project_files import DiskFiles, kind_of
from whygpu.linter.settings import Settings
from whygpu.linter.setup_file import analyse_setup, located, place_in
from whygpu.model.cause import Cause
from whygpu.model.code_finding import FileProblem, TextFinding, TextReport
from whygpu.model.program import Edit
from whygpu.readers.code.notebook import syntax_error
from whygpu.readers.code.source import SourceProblem

_NOTEBOOK = ".ipynb"


def forget_the_disk() -> None:
    """A command reads each file once. In an editor, files change between two looks at them."""
    for module in (imported_modules, neighbours, pins, project_files, project_texts):
        module.forget()


def lint_text(
    path: str,
    text: str,
    settings: Settings,
    causes: Sequence[Cause],
    open_texts: Mapping[str, str],
    *,
    is_python: bool,
) -> TextReport:
    """`open_texts`: other files that are open, by their absolute paths.

    `is_python`: the editor takes it for Python, whatever its name. Notebooks are left out, because
    their text is JSON with the lines of cells in it.
    """
    if settings.excludes(path) or path.endswith(_NOTEBOOK):
        return TextReport()
    content = _encoded(text)
    if kind_of(path) is None and (is_python or is_for_lint(path, content)):
        return _lint_python(path, text, content, settings, causes)
    if is_for_lint(path, content):
        return _lint_setup(path, text, settings, causes, open_texts)
    return TextReport()


def fixed_text(path: str, text: str, settings: Settings, causes: Sequence[Cause]) -> str:
    """The text with every fix that `lint --fix` makes."""
    content = _encoded(text)
    made = fixed(path, content, settings, causes).content
    return text if made == content else made.decode(_encoding(text))


def _lint_python(
    path: str, text: str, content: bytes, settings: Settings, causes: Sequence[Cause]
) -> TextReport:
    try:
        analysis = analyse(path, content, settings, causes)
    except SourceProblem as problem:
        return TextReport(
            problems=(FileProblem(path, problem.line, problem.kind, problem.message),)
        )
    lines = analysis.source.text.split("\n")
    findings = (
        TextFinding(locate(analysis.source, lines, item, None), _safe(text, item.edits))
        for item, reason in analysis.found
        if reason is None
    )
    return TextReport(tuple(findings), tuple(analysis.problems))


def _safe(text: str, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits, if the text is still Python with them."""
    return edits if edits and syntax_error(replaced(text, edits)) is None else ()


def _lint_setup(
    path: str,
    text: str,
    settings: Settings,
    causes: Sequence[Cause],
    open_texts: Mapping[str, str],
) -> TextReport:
    plain = text.replace("\r\n", "\n")
    files = _OpenFirst(open_texts)
    analysis = analyse_setup(path, plain, settings, causes, files)
    findings = []
    for item, reason in analysis.found:
        if reason is None and item.place.file == path:
            edits = tuple(Edit(place_in(plain, e.place), e.replacement) for e in item.edits)
            findings.append(TextFinding(located(item, None, plain), edits))
        elif reason is None:
            other = files.read(item.place.file) or ""
            findings.append(TextFinding(located(item, None, other), ()))
    return TextReport(tuple(findings), analysis.problems)


class _OpenFirst:
    """Files of the disk, except for those that are open."""

    def __init__(self, open_texts: Mapping[str, str]) -> None:
        self._open, self._disk = open_texts, DiskFiles()

    def read(self, path: str) -> str | None:
        text = self._open.get(os.path.abspath(path))
        return self._disk.read(path) if text is None else text.replace("\r\n", "\n")

    def names(self, folder: str) -> tuple[str, ...]:
        return self._disk.names(folder)

    def stamp(self, path: str) -> object:
        text = self._open.get(os.path.abspath(path)) if self._open else None
        if text is not None:
            return text
        try:
            facts = os.stat(path)
        except (OSError, ValueError):
            return None
        return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _encoding(text: str) -> str:
    """The encoding that the text declares for its file, if it can be written in it."""
    try:
        declared, _ = tokenize.detect_encoding(io.BytesIO(text.encode("utf-8")).readline)
        text.encode(declared)
    except (SyntaxError, UnicodeEncodeError):
        return "utf-8"
    return declared


def _encoded(text: str) -> bytes:
    return text.encode(_encoding(text), "replace")
