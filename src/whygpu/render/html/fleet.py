"""The answer of `whygpu fleet report`: nodes by cause, and which are not like the others."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.fleet import CauseGroup, Drift, FleetReport, UnreadFolder
from whygpu.model.stress import speed_text
from whygpu.render.fleet_text import (
    facts_text,
    needs_text,
    nodes_text,
    other_files_text,
    shared_text,
    summary,
    unexpected_text,
    unknown_text,
)
from whygpu.render.html.findings import remedies
from whygpu.render.html.markup import Child, Html, article, code, h3, p
from whygpu.render.html.parts import Sheet, badge, cells_table, folded, items, sections
from whygpu.render.load_text import RATE_WORDS


def sheet(report: FleetReport) -> Sheet:
    needs = [text] if (text := needs_text(report)) else []
    hardware = [f"{group.gpus}: {nodes_text(group.nodes)}" for group in report.hardware]
    causes = [_cause(group) for group in report.causes]
    dates = [f"snapshots of {report.oldest} to {report.newest}"] if report.oldest else []
    others = [other_files_text(report.other_files)] if report.other_files else []
    return Sheet(
        "fleet report",
        report.standing,
        summary(report),
        (*needs, *hardware, *dates, *others),
        None,
        sections(
            ("What to do", causes),
            ("Not like the others", _drift(report.drift)),
            ("Slower under load than others of their model", _slow(report)),
            ("Without a usable snapshot", _lost(report)),
            (
                "Not on the list of expected nodes",
                p(unexpected_text(report, True)) if report.unexpected else None,
            ),
            ("Folders that could not be read", unread_folders(report.unread_folders)),
            ("Could not tell", _unchecked(report)),
            ("Not compared, because it is unknown there", _unknown_facts(report)),
            ("Every node", _by_verdict(report)),
        ),
    )


def _cause(group: CauseGroup) -> Html:
    example = group.example
    return article(
        h3(
            f"{group.code} {group.cause}",
            badge(group.severity, group.severity),
            badge(nodes_text(len(group.nodes)), ""),
        ),
        p(f"Only on these nodes: {shared_text(group)}.") if group.shared else None,
        p(f"On {example.node}: {example.finding.message}") if example is not None else None,
        remedies(example.finding.remedies, example.installer) if example is not None else None,
        folded("Nodes", p(", ".join(group.nodes))),
        p("Why it happens, and what else helps: ", code(f"whygpu rule {group.code}"), kind="soft"),
        kind=f"finding {group.severity}",
    )


def _drift(drifts: Sequence[Drift]) -> Html | None:
    rows: list[Sequence[Child]] = [
        (
            drift.fact,
            drift.usual or "no value on two thirds",
            f"{drift.usual_nodes:,} of {drift.compared:,} with {drift.among}{unknown_text(drift)}",
            odd.value,
            ", ".join(odd.nodes),
        )
        for drift in drifts
        for odd in drift.others
    ]
    columns = ("fact", "usual", "on", "differs", "nodes")
    return cells_table("Not like the others", columns, rows, names=("differs", "nodes"))


def _slow(report: FleetReport) -> Html | None:
    rows = [
        (
            slow.node,
            f"GPU {slow.gpu}",
            slow.model,
            RATE_WORDS[slow.rate],
            speed_text(slow.rate, slow.per_second),
            f"{slow.share:.0%} of {speed_text(slow.rate, slow.median)}",
        )
        for slow in report.slow
    ]
    columns = ("node", "GPU", "model", "what", "speed", "of the usual")
    return cells_table("Slower under load", columns, rows)


def _lost(report: FleetReport) -> Html | None:
    rows = [(loss.node, loss.kind, loss.reason) for loss in report.lost]
    columns = ("node", "what", "why")
    return cells_table("Without a usable snapshot", columns, rows, names=("why",))


def unread_folders(folders: Sequence[UnreadFolder]) -> Html | None:
    return items(f"{each.folder}: {each.reason}" for each in folders)


def _by_verdict(report: FleetReport) -> Html | None:
    rows: list[Sequence[Child]] = [
        (badge(each.verdict, each.verdict), f"{each.nodes:,}", ", ".join(each.names))
        for each in report.verdicts
    ]
    columns = ("verdict", "nodes", "names")
    table = cells_table("Every node", columns, rows, figures=("nodes",), names=("names",))
    return folded(nodes_text(report.judged), table)


def _unchecked(report: FleetReport) -> Html | None:
    return items(f"{each.reason} ({', '.join(each.nodes)})" for each in report.uncheckable)


def _unknown_facts(report: FleetReport) -> Html | None:
    return items(
        f"{facts_text(each)} on {nodes_text(len(each.nodes))}: {each.reason}"
        for each in report.unknown_facts
    )
