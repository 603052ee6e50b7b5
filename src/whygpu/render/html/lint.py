"""The answer of `whygpu lint`: findings by file, each with its line of source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from whygpu.model.code_finding import LintReport, Located
from whygpu.render.html.markup import (
    Child,
    Html,
    article,
    b,
    code,
    div,
    h3,
    join,
    mark,
    p,
    pre,
    span,
)
from whygpu.render.html.parts import Sheet, badge, items, sections
from whygpu.render.lint_text import marked_line, summary, where
from whygpu.render.text_page import sentence


def sheet(report: LintReport) -> Sheet:
    by_file = groupby(report.findings, lambda found: found.path)
    titled: list[tuple[str, Child]] = [
        (path, [_finding(found) for found in group]) for path, group in by_file
    ]
    return Sheet(
        "lint",
        report.standing,
        sentence(summary(report)),
        sections=sections(
            ("Fixed", items(_fixes(report))),
            *titled,
            ("Not checked", items(_problems(report))),
            ("Ignored by comments in the source", items(_ignored(report))),
        ),
    )


def _finding(found: Located) -> Html:
    finding = found.finding
    return article(
        h3(
            f"{finding.code} {finding.cause}",
            badge(finding.severity, finding.severity),
            badge("--fix can fix it", "") if found.fixable else None,
        ),
        p(sentence(finding.message)),
        _source(found),
        [p(b("Fix: "), sentence(remedy.text)) for remedy in finding.remedies],
        p("Why it matters: ", code(f"whygpu rule {finding.code}"), kind="soft"),
        kind=f"finding {finding.severity}",
    )


def _source(found: Located) -> Html:
    """The line with its number; what the finding is about is marked, if all of it can be shown."""
    marked = marked_line(found)
    shown: Child = found.source
    if "".join(marked) == found.source:
        shown = join(marked.before, mark(marked.middle), marked.after)
    cell = f"cell {found.cell}, " if found.cell is not None else ""
    number = span(f"{cell}line {found.line}  ", kind="gutter")
    return div(pre(number, code(shown), tabindex=0), kind="lines")


def _fixes(report: LintReport) -> Iterator[str]:
    for fix, count in Counter(report.fixes).items():
        times = f" ({count:,} times)" if count > 1 else ""
        yield f"{fix.path}: {fix.code} {fix.cause}{times}"


def _problems(report: LintReport) -> Iterator[str]:
    for problem in report.problems:
        what = "a bug in whygpu: " if problem.kind == "crashed" else ""
        yield f"{problem.path}:{problem.line}: {what}{problem.message}"
    for left in report.not_fixed:
        yield f"{left.path} is left as it is: {left.why}"


def _ignored(report: LintReport) -> Iterator[str]:
    for found in report.ignored:
        yield f"{where(found)}: {found.finding.code}: {found.reason or 'no reason given'}"
