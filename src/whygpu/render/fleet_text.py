"""The report on many machines for people: what to do first, then who is not like the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.model.fleet import CauseGroup, Drift, FleetReport, SlowGpu, UnreadFolder
from whygpu.model.standing import Standing
from whygpu.model.stress import speed_text
from whygpu.render.check_text import (
    HEADLINE_STYLES,
    STYLES,
    headline,
    labelled,
    shortened,
    write_remedy,
)
from whygpu.render.load_text import RATE_WORDS
from whygpu.render.marks import MARKS
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
_MOST_ROWS = 20
"""Rows of a list of nodes or values; all of them with -v."""
_INDENT = 3


def render(
    report: FleetReport,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    headline(page, marks[report.standing], summary(report), HEADLINE_STYLES[report.standing])
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
    write_unread_folders(page, report.unread_folders, verbose)
    _uncheckable(page, report, verbose)
    if verbose:
        _by_verdict(page, report)
    if report.causes:
        page.line()
        more = "" if verbose else ". Every node: -v or --json"
        page.paragraph(f"Details: whygpu rule {report.causes[0].code}{more}", DIM)
    return page.text()


def summary(report: FleetReport) -> str:
    """The headline: every node is in exactly one of its numbers."""
    parts = [f"{count.nodes:,} {_VERDICTS[count.verdict]}" for count in report.verdicts]
    if report.lost:
        parts.append(f"{len(report.lost):,} without a usable snapshot")
    return f"{nodes_text(report.nodes)}: {', '.join(parts)}"


def nodes_text(count: int) -> str:
    return f"{count:,} node" + ("" if count == 1 else "s")


def names_text(nodes: Sequence[str], verbose: bool) -> str:
    shown = nodes if verbose else nodes[:MOST_NAMES]
    more = f" and {len(nodes) - len(shown):,} more" if len(shown) < len(nodes) else ""
    return f"{', '.join(shown)}{more}"


def other_files_text(count: int) -> str:
    if count == 1:
        return "1 file with another name was not read"
    return f"{count:,} files with other names were not read"


def write_unread_folders(page: Page, folders: Sequence[UnreadFolder], verbose: bool) -> None:
    if not folders:
        return
    page.section("Folders that could not be read", STYLES["unknown"])
    shown = folders if verbose else folders[:_MOST_ROWS]
    for item in shown:
        page.hanging("", f"{item.folder}: {item.reason}", _INDENT)
    _more(page, len(folders) - len(shown), "folders")


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
    for remedy in example.finding.remedies:
        write_remedy(page, remedy, example.installer)


def shared_text(group: CauseGroup) -> str:
    return "; ".join(f"{shared.fact} {shared.value}" for shared in group.shared)


def _drifts(page: Page, drifts: Sequence[Drift], verbose: bool) -> None:
    odd = [drift for drift in drifts if drift.usual is not None]
    mixed = [drift for drift in drifts if drift.usual is None]
    if odd:
        page.section("Not like the others")
    for drift in odd:
        among = f"{drift.usual_nodes:,} of {nodes_text(drift.compared)} with {drift.among}"
        _rows(page, drift, f"{drift.usual} on {among}", verbose)
    if mixed:
        page.section("Different, and no value on more than half of the nodes")
    for drift in mixed:
        _rows(page, drift, f"{nodes_text(drift.compared)} with {drift.among}", verbose)


def _rows(page: Page, drift: Drift, text: str, verbose: bool) -> None:
    unknown = f"; not known on {drift.unknown:,}" if drift.unknown else ""
    page.hanging(f"{' ' * _INDENT}{drift.fact}", f"{text}{unknown}", _column(drift.fact), mark=BOLD)
    shown = drift.others if verbose else drift.others[:_MOST_ROWS]
    for odd in shown:
        names = names_text(odd.nodes, verbose)
        count = f" ({len(odd.nodes):,})" if len(odd.nodes) > 1 else ""
        page.hanging("", f"{odd.value}{count}: {names}", _INDENT + 3)
    _more(page, len(drift.others) - len(shown), "values")


def _column(label: str) -> int:
    return _INDENT + cells(label) + 2


def _slow(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.slow:
        return
    page.section("Slower under load than others of their model")
    shown = report.slow if verbose else report.slow[:_MOST_ROWS]
    for gpu in shown:
        label = f"{' ' * _INDENT}{gpu.node}"
        page.hanging(label, slow_text(gpu), cells(label) + 2, mark=BOLD)
    _more(page, len(report.slow) - len(shown), "GPUs")


def slow_text(slow: SlowGpu) -> str:
    return (
        f"GPU {slow.gpu}, {RATE_WORDS[slow.rate]}: {speed_text(slow.rate, slow.per_second)}, "
        f"{slow.share:.0%} of the {speed_text(slow.rate, slow.median)} that are usual of "
        f"{slow.compared:,} x {slow.model}"
    )


def _lost(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.lost:
        return
    page.section("Without a usable snapshot", STYLES["unknown"])
    shown = report.lost if verbose else report.lost[:_MOST_ROWS]
    for loss in shown:
        label = f"{' ' * _INDENT}{loss.node}"
        page.hanging(label, f"{loss.kind}: {shortened(loss.reason)}", cells(label) + 2, mark=BOLD)
    _more(page, len(report.lost) - len(shown), "nodes")


def _uncheckable(page: Page, report: FleetReport, verbose: bool) -> None:
    if not report.uncheckable:
        return
    page.section("Could not tell", STYLES["unknown"])
    shown = report.uncheckable if verbose else report.uncheckable[:_MOST_ROWS]
    for item in shown:
        page.hanging("", f"{item.reason} ({names_text(item.nodes, verbose)})", _INDENT)
    _more(page, len(report.uncheckable) - len(shown), "reasons")


def _more(page: Page, count: int, what: str) -> None:
    if count > 0:
        page.hanging("", f"... and {count:,} more {what} (-v)", _INDENT)
