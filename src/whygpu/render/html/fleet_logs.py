"""The answer of `whygpu fleet explain`: what ended many jobs, by cause, by node and by week."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.figures import counted
from whygpu.model.fleet_logs import Count, FleetLogs, LogCauseGroup
from whygpu.render.fleet_logs_text import summary, unread_text
from whygpu.render.fleet_text import other_files_text
from whygpu.render.html import svg
from whygpu.render.html.findings import remedies
from whygpu.render.html.fleet import unread_folders
from whygpu.render.html.markup import Child, Html, article, code, h3, p
from whygpu.render.html.parts import Sheet, badge, cells_table, folded, items, sections


def sheet(report: FleetLogs) -> Sheet:
    other = report.other_files
    return Sheet(
        "fleet explain",
        report.standing,
        summary(report),
        (other_files_text(other),) if other else (),
        None,
        sections(
            ("Jobs by cause", _causes(report)),
            ("What to do", [_cause(group) for group in report.causes]),
            ("Nodes, most jobs with a cause first", _nodes(report)),
            ("Jobs with a cause, by week", _counts("Weeks", "week", report.weeks)),
            ("Cannot be told from the log", _open(report)),
            ("Could not be read", _unread(report)),
            ("Folders that could not be read", unread_folders(report.unread_folders)),
        ),
    )


def _causes(report: FleetLogs) -> Html | None:
    counts = [Count(f"{group.code} {group.cause}", group.jobs) for group in report.causes]
    return _counts("Causes", "cause", counts)


def _cause(group: LogCauseGroup) -> Html:
    example = group.example
    return article(
        h3(f"{group.code} {group.cause}", badge(counted(group.jobs, "job"), "error")),
        p(f"In {example.file}: {example.finding.message}") if example is not None else None,
        remedies(example.finding.remedies, example.installer) if example is not None else None,
        folded("By node", _counts("Nodes", "node", group.nodes)) if group.nodes else None,
        folded("By week", _counts("Weeks", "week", group.weeks)) if len(group.weeks) > 1 else None,
        p("Why it happens, and what else helps: ", code(f"whygpu rule {group.code}"), kind="soft"),
        kind="finding error",
    )


def _counts(title: str, column: str, counts: Sequence[Count]) -> Html | None:
    most = max((count.jobs for count in counts), default=1) or 1
    rows: list[Sequence[Child]] = [
        (count.name, f"{count.jobs:,}", svg.bar([(count.jobs / most, "bar")])) for count in counts
    ]
    return cells_table(title, (column, "jobs", "how many"), rows, figures=("jobs",))


def _nodes(report: FleetLogs) -> Html | None:
    rows: list[Sequence[Child]] = [
        (
            each.node,
            f"{each.found:,}",
            f"{each.jobs:,}",
            svg.bar([(each.found / max(each.jobs, 1), "bar-cpu")]),
        )
        for each in report.nodes
    ]
    columns = ("node", "with a cause", "jobs", "share")
    return cells_table("Nodes", columns, rows, figures=columns[1:3])


def _open(report: FleetLogs) -> Html | None:
    rows: list[Sequence[Child]] = [
        (each.reason, f"{each.jobs:,}", each.file) for each in report.unknown
    ]
    columns = ("what the log says", "jobs", "for example")
    return cells_table(
        "Cannot be told from the log", columns, rows, figures=("jobs",), names=("for example",)
    )


def _unread(report: FleetLogs) -> Html | None:
    more = report.unread_files - len(report.unread)
    rest = [f"and {more:,} more"] if more > 0 else []
    return items([*map(unread_text, report.unread), *rest])
