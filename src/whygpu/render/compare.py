"""A comparison for people: the verdict, the lanes, the pairs, and the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.model.comparison import ComparisonReport, LaneResult, PairVerdict, Verdict
from whygpu.render import compare_rows as rows
from whygpu.render.layout import BOLD, GREEN, RED, YELLOW, Page

MARKS: dict[Verdict, str] = {"equal": "✓", "rounding": "✓", "different": "✗", "undetermined": "?"}
PLAIN_MARKS: dict[Verdict, str] = {
    "equal": "+",
    "rounding": "+",
    "different": "x",
    "undetermined": "?",
}
_STYLES: dict[Verdict, str] = {
    "equal": GREEN,
    "rounding": GREEN,
    "different": RED,
    "undetermined": YELLOW,
}
_MOST_LAYERS = 5
_INDENT = 3


def render(
    report: ComparisonReport,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    marks: Mapping[Verdict, str] = MARKS,
) -> str:
    page = Page(width, color)
    style = f"{BOLD};{_STYLES[report.verdict]}"
    page.hanging(marks[report.verdict], report.headline, 2, style)
    page.line()
    page.hanging("  ", _about(report), 2)
    page.section("Lanes")
    _lanes(page, report.lanes, width)
    if report.pairs:
        page.section("Differences")
        table = [rows.OUTPUT_COLUMNS, *(rows.pair_row(pair) for pair in report.pairs)]
        _table(page, table, width)
        page.section("Because")
        for pair in _told(report.pairs, verbose):
            _reasons(page, pair, marks)
        for pair in report.pairs:
            _layers(page, pair, width, verbose)
    for note in report.notes:
        page.line()
        page.hanging("note", note, 6)
    return page.text()


def _about(report: ComparisonReport) -> str:
    reference = (
        f"reference float64 on the CPU ({report.reference.backend})"
        if report.reference.ran
        else f"no float64 reference: {report.reference.reason}"
    )
    return f"{report.what}; inputs {report.inputs}; tolerance {report.tolerance}; {reference}"


def _lanes(page: Page, lanes: Sequence[LaneResult], width: int) -> None:
    ran = [lane for lane in lanes if lane.run.end == "ran"]
    if ran:
        _table(page, [rows.LANE_COLUMNS, *(rows.lane_row(lane) for lane in ran)], width)
    for lane in lanes:
        name = lane.run.lane.name
        if lane.run.end != "ran":
            text = f"{name} {rows.ENDS[lane.run.end]}: {lane.run.reason}"
            page.hanging("", f"{' ' * _INDENT}{text}", _INDENT, YELLOW)
        if lane.determinism.kind in ("unseeded", "different", "rounding"):
            page.hanging("   -", f"{name}: {lane.determinism.reason}", 5)
        if lane.speed is not None and lane.speed.slower_because:
            page.hanging("   -", rows.slower(lane), 5)
        for note in lane.run.notes:
            page.hanging("   -", f"{name}: {note}", 5)


def _told(pairs: Sequence[PairVerdict], verbose: bool) -> list[PairVerdict]:
    """Each reason once: pairs that agree are told by the one that is furthest apart."""
    if verbose:
        return list(pairs)
    odd = [pair for pair in pairs if pair.verdict in ("different", "undetermined")]
    told: dict[tuple[str | None, str], PairVerdict] = {}
    for pair in [] if odd else pairs:
        told.setdefault((pair.level, pair.verdict), pair)
    return odd or list(told.values())


def _reasons(page: Page, pair: PairVerdict, marks: Mapping[Verdict, str]) -> None:
    said = rows.verdict_words(pair.verdict, pair.level)
    off = f"; {pair.off} is off" if pair.off else ""
    title = f"{pair.a} and {pair.b}: {said}{off}"
    page.hanging(f" {marks[pair.verdict]}", title, _INDENT, _STYLES[pair.verdict])
    for reason in pair.reasons:
        page.hanging("   -", reason, 5)


def _layers(page: Page, pair: PairVerdict, width: int, verbose: bool) -> None:
    """All layers where asked for; else those about the one at which two lanes part."""
    if not pair.layers or (pair.verdict != "different" and not verbose):
        return
    shown = list(pair.layers)
    names = [layer.layer for layer in shown]
    if not verbose:
        at = names.index(pair.first_layer) if pair.first_layer in names else 0
        start = max(0, at - _MOST_LAYERS // 2)
        shown = shown[start : start + _MOST_LAYERS]
    page.section(f"Layers of {pair.a} and {pair.b}")
    _table(page, [rows.LAYER_COLUMNS, *(rows.layer_row(layer) for layer in shown)], width)
    if len(shown) < len(pair.layers):
        page.line(f"{' ' * _INDENT}{len(pair.layers):,} layers in all: -v shows each")


def _table(page: Page, table: Sequence[Sequence[str]], width: int) -> None:
    """Columns as wide as they need to be; the widest gives way where the page is too narrow."""
    sizes = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    room = max(width - _INDENT - 2 * (len(sizes) - 1), len(sizes) * 4)
    while sum(sizes) > room and max(sizes) > 8:
        widest = sizes.index(max(sizes))
        sizes[widest] -= 1
    for number, row in enumerate(table):
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=True)]
        page.line(" " * _INDENT + "  ".join(cells).rstrip(), "" if number else BOLD)


def _cut(text: str, room: int) -> str:
    """The end of a name tells more than its beginning."""
    return text if len(text) <= room else "…" + text[len(text) - room + 1 :]
