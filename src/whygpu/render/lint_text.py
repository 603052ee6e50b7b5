"""Findings in source code for people: the place, the line with a caret, the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whygpu.model.code_finding import FileProblem, FixedFinding, LintReport, Located
from whygpu.model.figures import counted
from whygpu.model.standing import Standing
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, CYAN, RED, YELLOW, Page

_STYLES = {"error": f"{BOLD};{RED}", "warning": f"{BOLD};{YELLOW}", "info": CYAN}


class Marked(NamedTuple):
    """The source line of a finding in three parts; the middle one is marked."""

    before: str
    middle: str
    after: str


def marked_lines(report: LintReport) -> tuple[Marked, ...]:
    """One for each finding. The exit redacts them beside the whole line, which may get shorter."""
    return tuple(map(marked_line, report.findings))


def marked_line(found: Located) -> Marked:
    text, before = found.source, found.source_column
    start = found.column - before
    end = found.end_column - before if found.end_line == found.line else len(text)
    return Marked(text[:start], text[start:end], text[end:])


def render(
    report: LintReport,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    marks: Mapping[Standing, str] = MARKS,
    marked: Sequence[Marked] | None = None,
) -> str:
    """`marked` are the marked_lines of the report, as they may be shown."""
    page = Page(width, color)
    headline(page, report.standing, summary(report), marks)
    _fixes(page, report.fixes)
    lines = marked_lines(report) if marked is None else marked
    for found, line in zip(report.findings, lines, strict=True):
        _finding(page, found, line)
    for problem in report.problems:
        _problem(page, problem)
    if verbose and report.ignored:
        page.line()
        for found in report.ignored:
            reason = found.reason or "no reason given"
            page.line(f"{where(found)}: {found.finding.code} ignored: {reason}")
    if report.findings:
        page.line()
        code = min(found.finding.code for found in report.findings)
        page.line(f"Details: whygpu rule {code}")
    return page.text()


def _fixes(page: Page, fixes: Sequence[FixedFinding]) -> None:
    """What --fix has changed: a line for each cause in each file."""
    if not fixes:
        return
    page.line()
    for fix, count in Counter(fixes).items():
        times = f" ({count:,} times)" if count > 1 else ""
        page.line(f"fixed {fix.path}: {fix.code} {fix.cause}{times}")


def summary(report: LintReport) -> str:
    return "; ".join((_findings(report), *_changes(report), *_not_checked(report)))


def _findings(report: LintReport) -> str:
    count, files = len(report.findings), len({found.path for found in report.findings})
    if count:
        return f"{counted(count, 'finding')} in {files:,} of {counted(report.files, 'file')}"
    if report.files:
        checked = report.files - report.unread - report.templates
        return f"no findings in {counted(checked, 'file')}"
    return "no file found that lint reads"


def _changes(report: LintReport) -> Iterator[str]:
    fixable = sum(found.fixable for found in report.findings)
    if fixable:
        yield f"--fix can fix {fixable:,}"
    if report.fixed:
        yield f"{report.fixed:,} fixed"
    if report.ignored:
        yield f"{len(report.ignored):,} ignored"
    if report.left_out:
        yield f"{report.left_out:,} more findings and problems are not shown"


def _not_checked(report: LintReport) -> Iterator[str]:
    """What was not checked; a reader would otherwise take it for fine."""
    cells = sum(problem.cell is not None for problem in report.problems)
    crashes = sum(problem.kind == "crashed" for problem in report.problems)
    if report.unread:
        yield f"{report.unread:,} could not be read"
    if report.templates:
        yield f"{counted(report.templates, 'template')} not checked: render them first"
    if cells:
        yield f"{counted(cells, 'cell')} could not be read"
    if crashes:
        yield f"{counted(crashes, 'check')} failed because of a bug in whygpu"


def where(found: Located) -> str:
    cell = f"cell {found.cell}:" if found.cell is not None else ""
    return f"{found.path}:{cell}{found.line}:{found.column}"


def _finding(page: Page, found: Located, marked: Marked) -> None:
    finding = found.finding
    name = page.styled(f"{finding.code} {finding.cause}", _STYLES[finding.severity])
    fix = " [fixable]" if found.fixable else ""
    page.line()
    page.line(f"{page.styled(where(found), BOLD)}: {name}{fix}")
    page.hanging("", finding.message, 2)
    for line in _source(found, marked, page.width):
        page.line(line)
    for remedy in finding.remedies:
        page.hanging("  fix", remedy.text, 7)


def _source(found: Located, marked: Marked, width: int) -> list[str]:
    """The line of source and a caret under it; of a long line, the part that matters."""
    gutter = f"  {found.line:>5} | "
    room = max(width - len(gutter), 20)
    text = found.source.expandtabs(1)
    if "".join(marked) != found.source:
        # Something private was removed across the edge of the marked part.
        return [f"{gutter}{text.strip()[:room]}".rstrip()]
    start, length = len(marked.before), max(len(marked.middle), 1)
    indent = len(text) - len(text.lstrip())
    cut = indent
    if start + length - cut > room:
        cut = max(min(start, len(text) - room), indent)
    shown = text[cut : cut + room]
    length = max(min(length, len(shown) - (start - cut)), 1)
    marks = " " * (start - cut) + "^" + "~" * (length - 1)
    return [f"{gutter}{shown}".rstrip(), f"{' ' * (len(gutter) - 2)}| {marks}"]


def _problem(page: Page, problem: FileProblem) -> None:
    what = "a bug in whygpu" if problem.kind == "crashed" else "not checked"
    page.line()
    page.line(f"{problem.path}:{problem.line}: {what}")
    page.hanging("", problem.message, 2)
