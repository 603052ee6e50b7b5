"""What ended many jobs, for people: by cause with an example of each, by node, by week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.model.figures import counted, first_of
from whygpu.model.fleet_logs import Count, FleetLogs, LogCauseGroup, UnreadLog
from whygpu.model.standing import Standing
from whygpu.render.check_text import (
    STYLES,
    labelled,
    shortened,
    write_remedy,
)
from whygpu.render.fleet_text import (
    MOST_ROWS,
    about_node,
    first,
    other_files_text,
    write_more,
    write_unread_folders,
)
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import DIM, Page

_VERDICTS = {
    "found": "with a cause that was found",
    "not-gpu": "that failed without the GPU's doing",
    "nothing-wrong": "without a failure",
    "unknown": "undecided",
}
_MOST_COUNTS = 8
_INDENT = 3


def render(
    report: FleetLogs,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    headline(page, report.standing, summary(report), marks)
    if report.other_files:
        page.hanging("", other_files_text(report.other_files), 2)
    for number, group in enumerate(report.causes, 1):
        _cause(page, number, group, verbose)
    _nodes(page, report, verbose)
    if report.weeks:
        page.section("Jobs with a cause, by the week in which their log ended")
        _counts(page, report.weeks, len(report.weeks) if verbose else MOST_ROWS)
    _open(page, report, verbose)
    _unread(page, report, verbose)
    write_unread_folders(page, report.unread_folders, verbose)
    if report.causes:
        page.line()
        page.paragraph(f"Details: whygpu rule {report.causes[0].code}", DIM)
    return page.text()


def summary(report: FleetLogs) -> str:
    """The headline: every log is in exactly one of its numbers."""
    parts = [f"{count.jobs:,} {_VERDICTS[count.verdict]}" for count in report.verdicts]
    if report.unread_files:
        parts.append(f"{report.unread_files:,} that could not be read")
    return f"{counted(report.files, 'log')}: {', '.join(parts)}"


def _cause(page: Page, number: int, group: LogCauseGroup, verbose: bool) -> None:
    page.line()
    label = f"{number}. "
    text = f"{group.code} {group.cause}  {counted(group.jobs, 'job')}"
    page.hanging(label, text, max(_INDENT, len(label)), STYLES["error"])
    if group.nodes:
        labelled(page, "nodes", _in_words(group.nodes, verbose))
    if len(group.weeks) > 1:
        labelled(page, "weeks", _in_words(group.weeks, verbose))
    if group.example is None:
        return
    labelled(page, "in", group.example.file)
    labelled(page, "seen", shortened(group.example.finding.message))
    for remedy in group.example.finding.remedies[: None if verbose else 1]:
        write_remedy(page, remedy, group.example.installer)


def _in_words(counts: Sequence[Count], verbose: bool) -> str:
    words = [f"{count.name} ({count.jobs:,})" for count in counts]
    return first_of(words, len(words) if verbose else _MOST_COUNTS)


def _nodes(page: Page, report: FleetLogs, verbose: bool) -> None:
    if not report.nodes:
        return
    page.section("Nodes, most jobs with a cause first")
    for row in first(page, report.nodes, verbose, "nodes"):
        about_node(page, row.node, f"{row.found:,} of {counted(row.jobs, 'job')}")


def _counts(page: Page, counts: Sequence[Count], most: int) -> None:
    for count in counts[-most:]:
        page.hanging("", f"{count.name}  {count.jobs:,}", _INDENT)


def _open(page: Page, report: FleetLogs, verbose: bool) -> None:
    if not report.unknown:
        return
    page.section("Cannot be told from the log", STYLES["unknown"])
    for item in first(page, report.unknown, verbose, "reasons", _MOST_COUNTS):
        page.hanging("", f"{item.reason} ({item.jobs:,}), as in {item.file}", _INDENT)


def _unread(page: Page, report: FleetLogs, verbose: bool) -> None:
    if not report.unread_files:
        return
    page.section("Could not be read", STYLES["unknown"])
    shown = report.unread if verbose else report.unread[:MOST_ROWS]
    for item in shown:
        page.hanging("", unread_text(item), _INDENT)
    write_more(page, report.unread_files - len(shown), "files")


def unread_text(item: UnreadLog) -> str:
    """The file once, also if the reason names it."""
    reason = shortened(item.reason)
    return reason if item.file in reason else f"{item.file}: {reason}"
