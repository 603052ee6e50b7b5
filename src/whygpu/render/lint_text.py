"""Findings in source code for people: the place, the line with a caret, the fix."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whygpu.model.code_finding import FileProblem, LintReport, Located
from whygpu.model.standing import Standing
from whygpu.render.marks import MARKS

_STYLES = {"error": "\033[1;31m", "warning": "\033[1;33m", "info": "\033[1;36m"}
_BOLD, _PLAIN = "\033[1m", "\033[0m"


class Marked(NamedTuple):
    """The line of source that a finding is on, in three: the middle is what is marked."""

    before: str
    middle: str
    after: str


def marked_lines(report: LintReport) -> tuple[Marked, ...]:
    """For each finding. These pass the gate beside the whole line, which it may shorten."""
    return tuple(map(_marked, report.findings))


def _marked(found: Located) -> Marked:
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
    lines = marked_lines(report) if marked is None else marked
    blocks = ["\n".join(_wrapped(headline(report, marks), width, "", "  "))]
    blocks += [
        "\n".join(_finding(found, line, width, color))
        for found, line in zip(report.findings, lines, strict=True)
    ]
    blocks += ["\n".join(_problem(problem, width)) for problem in report.problems]
    if verbose and report.ignored:
        blocks.append("\n".join(_ignored(found) for found in report.ignored))
    codes = sorted({found.finding.code for found in report.findings})
    if codes:
        blocks.append(f"More about one: whygpu rule {codes[0]}")
    return "\n\n".join(blocks) + "\n"


def headline(report: LintReport, marks: Mapping[Standing, str]) -> str:
    count, files = len(report.findings), len({found.path for found in report.findings})
    said = f"{marks[report.standing]} "
    if count:
        said += f"{_number(count, 'finding')} in {files:,} of {_number(report.files, 'file')}"
    elif report.files:
        said += f"no findings in {_number(report.files - report.unread, 'file')}"
    else:
        said += "no Python file or notebook found"
    fixable = sum(found.fixable for found in report.findings)
    if fixable:
        said += f"; --fix mends {fixable:,}"
    if report.fixed:
        said += f"; {report.fixed:,} mended"
    if report.ignored:
        said += f"; {len(report.ignored):,} ignored"
    if report.left_out:
        said += f"; {report.left_out:,} more findings and problems are not shown"
    return "; ".join((said, *_not_looked_at(report)))


def _not_looked_at(report: LintReport) -> Iterator[str]:
    """What a reader would take for looked at and fine, were it not said."""
    cells = sum(problem.cell is not None for problem in report.problems)
    crashes = sum(problem.kind == "crashed" for problem in report.problems)
    if report.unread:
        yield f"{report.unread:,} could not be read"
    if cells:
        yield f"{_number(cells, 'cell')} could not be read"
    if crashes:
        yield f"{_number(crashes, 'look')} failed, by a bug in whygpu"


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def where(found: Located) -> str:
    cell = f"cell {found.cell}:" if found.cell is not None else ""
    return f"{found.path}:{cell}{found.line}:{found.column}"


def _finding(found: Located, marked: Marked, width: int, color: bool) -> list[str]:
    finding = found.finding
    mark, plain = (_STYLES[finding.severity], _PLAIN) if color else ("", "")
    bold = _BOLD if color else ""
    fix = " [fixable]" if found.fixable else ""
    lines = [f"{bold}{where(found)}{plain}: {mark}{finding.code} {finding.cause}{plain}{fix}"]
    lines += _wrapped(finding.message, width, "  ")
    lines += _source(found, marked, width)
    for remedy in finding.remedies:
        lines += _wrapped(f"fix  {remedy.text}", width, "  ", "       ")
    return lines


def _wrapped(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_on_hyphens=False,
    )


def _source(found: Located, marked: Marked, width: int) -> list[str]:
    """The line of source and a caret under it; of a long line, the part that matters."""
    gutter = f"  {found.line:>5} | "
    room = max(width - len(gutter), 20)
    text = found.source.expandtabs(1)
    if "".join(marked) != found.source:
        # Something private that was removed reaches over the edge of what is marked.
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


def _problem(problem: FileProblem, width: int) -> list[str]:
    said = {
        "python2": "not looked at",
        "crashed": "a bug in whygpu",
    }.get(problem.kind, "not looked at")
    return [
        f"{problem.path}:{problem.line}: {said}",
        *_wrapped(problem.message, width, "  "),
    ]


def _ignored(found: Located) -> str:
    reason = found.reason or "no reason given"
    return f"{where(found)}: {found.finding.code} ignored: {reason}"
