"""A finding in source code: the finding, its place, and the edits that fix it."""

from __future__ import annotations

import ast
from typing import Literal, NamedTuple

from whygpu.model.finding import Finding
from whygpu.model.program import Edit, Origin, Place
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, EXIT_FINE, EXIT_FOUND, Standing

EXIT_UNREADABLE = EXIT_NOT_WRITTEN = 2
EXIT_BUG = 3

FileProblemKind = Literal["unreadable", "syntax", "python2", "notebook", "too-large", "crashed"]


class CodeFinding(NamedTuple):
    finding: Finding
    place: Place
    edits: tuple[Edit, ...] = ()
    """Empty if no safe edit is known."""
    origin: Origin | None = None
    """The line of another file that does it, if only its call is in this file."""
    node: ast.AST | None = None
    """The piece of code at its place."""


class Located(NamedTuple):
    """A finding in a file, as it is reported."""

    finding: Finding
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None
    """The number of a notebook's cell; lines are counted within it."""
    source: str
    """The line of source that it is on; for a very long line, the part around it."""
    fixable: bool
    reason: str | None = None
    """Why it is ignored, as a comment says; empty if the comment gives no reason."""
    source_column: int = 1
    """The column at which `source` begins; more than 1 for a part of a very long line."""


class FileProblem(NamedTuple):
    """A file that could not be checked, or not by every detector."""

    path: str
    line: int
    kind: FileProblemKind
    message: str
    cell: int | None = None
    """The number of the one cell that is left out of a notebook."""


class TextFinding(NamedTuple):
    """A finding in a text that an editor has open, and the edits that fix it there."""

    located: Located
    edits: tuple[Edit, ...]
    """Empty if no safe edit is known."""


class TextReport(NamedTuple):
    """What lint finds in the text of one file, whatever is on the disk."""

    findings: tuple[TextFinding, ...] = ()
    problems: tuple[FileProblem, ...] = ()


class FixedFinding(NamedTuple):
    """A finding that `--fix` has removed from a file. Its line may be another one now."""

    path: str
    code: str
    cause: str


class NotFixed(NamedTuple):
    """A file that has something to fix and was not changed."""

    path: str
    why: str


@shows_itself
class LintReport(NamedTuple):
    files: int
    findings: tuple[Located, ...]
    ignored: tuple[Located, ...]
    """Findings that a comment in the source suppresses."""
    problems: tuple[FileProblem, ...]
    fixes: tuple[FixedFinding, ...] = ()
    left_out: int = 0
    """Findings and problems beyond those that one report can hold."""
    not_fixed: tuple[NotFixed, ...] = ()
    templates: int = 0
    """Files that were not checked, because Helm or another program fills them in first."""

    @property
    def standing(self) -> Standing:
        if any(found.finding.severity != "info" for found in self.findings):
            return "wrong"
        if self.problems:
            return "unknown"
        # Only remarks, only templates or no file at all: no fault, but nothing that earns a tick.
        checked = self.files - self.templates
        return "answered" if self.findings or not checked else "fine"

    @property
    def exit_code(self) -> int:
        if any(problem.kind == "crashed" for problem in self.problems):
            return EXIT_BUG
        if self.not_fixed:
            return EXIT_NOT_WRITTEN
        return EXIT_UNREADABLE if self.standing == "unknown" else EXIT_CODES[self.standing]

    @property
    def fixed(self) -> int:
        return len(self.fixes)

    @property
    def unread(self) -> int:
        """How many files could not be checked."""
        wholly = (p for p in self.problems if p.kind != "crashed" and p.cell is None)
        return len({problem.path for problem in wholly})


@shows_itself
class SourcePatch(NamedTuple):
    """What fixing would change. No file was changed."""

    content: bytes
    """For `git apply`; empty if there is nothing to fix."""
    problems: tuple[FileProblem, ...]
    """Files that could not be read."""

    @property
    def exit_code(self) -> int:
        if self.content:
            return EXIT_FOUND
        return EXIT_UNREADABLE if self.problems else EXIT_FINE
