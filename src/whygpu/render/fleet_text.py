"""The report on many machines for people: what to do first, then who is not like the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from whygpu.model.figures import counted
from whygpu.model.fleet import CauseGroup, Drift, FleetReport, SlowGpu, UnknownFacts, UnreadFolder
from whygpu.model.outside_text import excerpt
from whygpu.model.standing import Standing
from whygpu.model.stress import speed_text
from whygpu.render.check_text import (
    STYLES,
    labelled,
    shortened,
    write_remedy,
)
from whygpu.render.load_text import RATE_WORDS
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, DIM, Page, cells

_VERDICTS = {
    "gpu": "on the GPU",
    "cpu": "on the CPU",
    "broken": "broken",
    "no-gpu": "without a GPU",
    "unknown": "unknown",
}
MOST_NAMES = 8
"""Names of nodes in one list; all of them with -v."""
MOST_ROWS = 20
"""Rows of a list of nodes or values; all of them with -v."""
_MOST_UNKNOWN = 5
_INDENT = 3
_WIDEST_LABEL = 30
Row = TypeVar("Row")
_LONGEST_NAME = 200
"""Of a node in this report: a hostile one may have thousands of characters."""


def render(
    report: FleetReport,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    headline(page, report.standing, summary(report), marks)
    if needs := needs_text(report):
        page.hanging("", needs, 2)
    for group in report.hardware:
        page.hanging("", f"{group.gpus}: {nodes_text(group.nodes)}", 2)
    _dates(page, report)
    if report.other_files:
        page.hanging("", other_files_text(report.other_files), 2)
    if report.causes:
        page.section("What to do, errors and the most nodes first")
    for number, cause in enumerate(report.causes, 1):
        _cause(page, number, cause, verbose)
    _drifts(page, report.drift, verbose)
    _slow(page, report, verbose)
    _lost(page, report, verbose)
    if report.unexpected:
        page.section("Not on the list of expected nodes")
        page.hanging("", unexpected_text(report, verbose), _INDENT)
    write_unread_folders(page, report.unread_folders, verbose)
    _uncheckable(page, report, verbose)
    _unknown_facts(page, report, verbose)
    if verbose:
        _by_verdict(page, report)
    if report.causes:
        page.line()
        more = "" if verbose else ". Every node and remedy: -v or --json"
        page.paragraph(f"Details: whygpu rule {report.causes[0].code}{more}", DIM)
    return page.text()


def summary(report: FleetReport) -> str:
    """The headline: every node is in exactly one of its numbers."""
    parts = [f"{count.nodes:,} {_VERDICTS[count.verdict]}" for count in report.verdicts]
    if report.lost:
        parts.append(f"{len(report.lost):,} without a usable snapshot")
    return f"{nodes_text(report.nodes)}: {', '.join(parts)}"


def needs_text(report: FleetReport) -> str:
    """How many nodes somebody should look at: being on the GPU does not mean that all is well."""
    parts = []
    if report.affected:
        parts.append(f"{nodes_text(len(report.affected))} with something to do")
    if report.odd:
        parts.append(f"{nodes_text(len(report.odd))} not like the others")
    return ", ".join(parts)


def nodes_text(count: int) -> str:
    return counted(count, "node")


def names_text(nodes: Sequence[str], verbose: bool) -> str:
    shown = nodes if verbose else nodes[:MOST_NAMES]
    more = f" and {len(nodes) - len(shown):,} more" if len(shown) < len(nodes) else ""
    return f"{', '.join(excerpt(name, _LONGEST_NAME) for name in shown)}{more}"


def unexpected_text(report: FleetReport, verbose: bool) -> str:
    return f"{names_text(report.unexpected, verbose)} ({len(report.unexpected):,})"


def other_files_text(count: int) -> str:
    if count == 1:
        return "1 file with another name was not read"
    return f"{count:,} files with other names were not read"


def write_unread_folders(page: Page, folders: Sequence[UnreadFolder], verbose: bool) -> None:
    if not folders:
        return
    page.section("Folders that could not be read", STYLES["unknown"])
    for item in first(page, folders, verbose, "folders"):
        page.hanging("", f"{item.folder}: {item.reason}", _INDENT)


def _by_verdict(page: Page, report: FleetReport) -> None:
    page.section("Every node")
    for count in report.verdicts:
        text = f"{_VERDICTS[count.verdict]} ({count.nodes:,}): {names_text(count.names, True)}"
        page.hanging("", text, _INDENT)


def _dates(page: Page, report: FleetReport) -> None:
    if report.oldest != report.newest:
        page.hanging("", f"snapshots of {report.oldest} to {report.newest}", 2)


def _cause(page: Page, number: int, group: CauseGroup, verbose: bool) -> None:
    page.line()
    about = f"{group.severity}, {nodes_text(len(group.nodes))}"
    text = f"{group.code} {group.cause}  {about}"
    label = f"{number}. "
    page.hanging(label, text, max(_INDENT, len(label)), STYLES[group.severity])
    page.hanging("", names_text(group.nodes, verbose), _INDENT)
    if group.shared:
        labelled(page, "only", f"on these nodes: {shared_text(group)}")
    if group.example is None:
        return
    example = group.example
    labelled(page, "seen", f"on {example.node}: {shortened(example.finding.message)}")
    for remedy in example.finding.remedies[: None if verbose else 1]:
        write_remedy(page, remedy, example.installer)


def shared_text(group: CauseGroup) -> str:
    return "; ".join(
        f"{shared.fact} {shared.value}"
        + (f" (unknown on {shared.unknown:,} of the others)" if shared.unknown else "")
        for shared in group.shared
    )


def _drifts(page: Page, drifts: Sequence[Drift], verbose: bool) -> None:
    odd = [drift for drift in drifts if drift.usual is not None]
    mixed = [drift for drift in drifts if drift.usual is None]
    if odd:
        page.section("Not like the others")
    for alike in _with_the_same_nodes(odd):
        if len(alike) == 1:
            _odd_fact(page, alike[0], verbose)
        else:
            _odd_nodes(page, alike, verbose)
    if mixed:
        page.section("Different, and no value on two thirds of the nodes")
    for drift in mixed:
        about = f"{nodes_text(drift.compared)} with {drift.among}{unknown_text(drift)}"
        _rows(page, drift, about, verbose)


def _with_the_same_nodes(drifts: Sequence[Drift]) -> list[list[Drift]]:
    """Facts in which the same nodes differ have one reason, most likely, and stand together."""
    groups: dict[tuple[object, ...], list[Drift]] = {}
    for drift in drifts:
        nodes = drift.others[0].nodes if len(drift.others) == 1 else drift.fact
        groups.setdefault((drift.among, nodes), []).append(drift)
    return list(groups.values())


def _odd_fact(page: Page, drift: Drift, verbose: bool) -> None:
    among = f"{usual_text(drift)} with {drift.among}{unknown_text(drift)}"
    _rows(page, drift, among, verbose)


def usual_text(drift: Drift) -> str:
    return f"{drift.usual} on {drift.usual_nodes:,} of {nodes_text(drift.compared)}"


def unknown_text(drift: Drift) -> str:
    """The majority is counted among the nodes whose value is known."""
    return f", not counting {drift.unknown:,} where it is unknown" if drift.unknown else ""


def _odd_nodes(page: Page, drifts: Sequence[Drift], verbose: bool) -> None:
    nodes = drifts[0].others[0].nodes
    count = f" ({len(nodes):,})" if len(nodes) > 1 else ""
    page.hanging("", f"{names_text(nodes, verbose)}{count}", _INDENT, BOLD)
    page.hanging("", f"unlike others with {drifts[0].among}:", _INDENT + 3)
    for drift in drifts:
        label = f"{' ' * (_INDENT + 3)}{drift.fact}"
        text = f"{drift.others[0].value}; {usual_text(drift)}{unknown_text(drift)}"
        page.hanging(label, text, cells(label) + 2, mark=BOLD)


def _rows(page: Page, drift: Drift, text: str, verbose: bool) -> None:
    page.hanging(f"{' ' * _INDENT}{drift.fact}", text, _column(drift.fact), mark=BOLD)
    for odd in first(page, drift.others, verbose, "values"):
        names = names_text(odd.nodes, verbose)
        count = f" ({len(odd.nodes):,})" if len(odd.nodes) > 1 else ""
        page.hanging("", f"{odd.value}{count}: {names}", _INDENT + 3)


def _column(label: str) -> int:
    return _INDENT + cells(label) + 2


def _slow(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.slow:
        return
    page.section("Slower under load than others of their model")
    for gpu in first(page, report.slow, verbose, "GPUs"):
        about_node(page, gpu.node, slow_text(gpu))


def slow_text(slow: SlowGpu) -> str:
    return (
        f"GPU {slow.gpu}, {RATE_WORDS[slow.rate]}: {speed_text(slow.rate, slow.per_second)}, "
        f"{slow.share:.0%} of the {speed_text(slow.rate, slow.median)} that are usual of "
        f"{slow.compared:,} x {slow.model}"
    )


def about_node(page: Page, node: str, text: str) -> None:
    """Text beside the name of a node, or below it if the name is long: it may have folders."""
    label = f"{' ' * _INDENT}{node}"
    if cells(label) <= _WIDEST_LABEL:
        page.hanging(label, text, cells(label) + 2, mark=BOLD)
    else:
        page.hanging("", excerpt(node, _LONGEST_NAME), _INDENT, BOLD)
        page.hanging("", text, _INDENT + 3)


def _lost(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.lost:
        return
    page.section("Without a usable snapshot", STYLES["unknown"])
    groups: dict[str, list[str]] = {}
    for loss in report.lost:
        groups.setdefault(f"{loss.kind}: {shortened(loss.reason)}", []).append(loss.node)
    rows = list(groups.items())
    shown = rows if verbose else rows[:MOST_ROWS]
    for why, nodes in shown:
        if len(nodes) == 1:
            about_node(page, nodes[0], why)
        else:
            page.hanging("", f"{names_text(nodes, verbose)} ({len(nodes):,})", _INDENT, BOLD)
            page.hanging("", why, _INDENT + 3)
    write_more(page, sum(len(nodes) for _, nodes in rows[len(shown) :]), "nodes")


def _uncheckable(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.uncheckable:
        return
    page.section("Could not tell", STYLES["unknown"])
    for item in first(page, report.uncheckable, verbose, "reasons"):
        page.hanging("", f"{item.reason} ({names_text(item.nodes, verbose)})", _INDENT)


def _unknown_facts(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.unknown_facts:
        return
    page.section("Not compared, because it is unknown there", STYLES["unknown"])
    for item in first(page, report.unknown_facts, verbose, "reasons", _MOST_UNKNOWN):
        on = names_text(item.nodes, verbose) if verbose else nodes_text(len(item.nodes))
        page.hanging("", f"{facts_text(item)} on {on}: {shortened(item.reason)}", _INDENT)


def facts_text(item: UnknownFacts) -> str:
    left = len(item.facts) - MOST_NAMES
    if left < 2:
        return ", ".join(item.facts)
    return f"{', '.join(item.facts[:MOST_NAMES])} and {left} more facts"


def first(
    page: Page, rows: Sequence[Row], verbose: bool, what: str, most: int = MOST_ROWS
) -> Iterator[Row]:
    """The rows to write, and then how many are left out. `what` is a plural."""
    shown = rows if verbose else rows[:most]
    yield from shown
    write_more(page, len(rows) - len(shown), what)


def write_more(page: Page, count: int, what: str) -> None:
    """What a list leaves out. `what` is a plural."""
    if count > 0:
        counted = what.removesuffix("s") if count == 1 else what
        page.hanging("", f"... and {count:,} more {counted} (-v)", _INDENT)
