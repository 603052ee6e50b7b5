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
_SHORTEST = 10
"""Names are cut down to this before columns are left out."""
_NAMES = ("name", "kind", "lanes", "parts at", "ran on", "lane")
_SPARE = ("NaN, inf", "cosine", "peak", "first call", "ULPs", "kind", "relative", "speed")
"""Columns that a narrow page does without, first to go first."""


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
        _table(page, [rows.PAIR_COLUMNS, *rows.pair_rows(report.pairs)], width)
        page.section("Because")
        told = _told(report.pairs, verbose)
        for pair, others in told:
            _reasons(page, pair, others, marks)
        for pair, _ in told:
            _figures(page, pair, width, verbose)
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
            page.hanging("   -", text, 5, YELLOW)
        if lane.determinism.kind in ("unseeded", "different", "rounding"):
            page.hanging("   -", f"{name}: {lane.determinism.reason}", 5)
        if lane.speed is not None and lane.speed.slower_because:
            page.hanging("   -", rows.slower(lane), 5)
        for note in lane.run.notes:
            page.hanging("   -", f"{name}: {note}", 5)


def _told(pairs: Sequence[PairVerdict], verbose: bool) -> list[tuple[PairVerdict, list[str]]]:
    """Pairs whose reasons are told, each with the pairs of which the same is true.

    What agrees is told where nothing else is.
    """
    odd = [pair for pair in pairs if pair.verdict in ("different", "undetermined")]
    groups: dict[tuple[object, ...], tuple[PairVerdict, list[str]]] = {}
    for number, pair in enumerate(pairs if verbose else odd or pairs):
        key = (number,) if verbose else (pair.verdict, pair.level, pair.first_layer, pair.off)
        if key in groups:
            groups[key][1].append(f"{pair.a} and {pair.b}")
        else:
            groups[key] = (pair, [])
    return list(groups.values())


def _reasons(
    page: Page, pair: PairVerdict, others: Sequence[str], marks: Mapping[Verdict, str]
) -> None:
    said = rows.verdict_words(pair.verdict, pair.level)
    off = f"; {pair.off} is off" if pair.off else ""
    title = f"{pair.a} and {pair.b}: {said}{off}"
    page.hanging(f" {marks[pair.verdict]}", title, _INDENT, _STYLES[pair.verdict])
    for reason in pair.reasons:
        page.hanging("   -", reason, 5)
    if others:
        page.hanging("   -", f"the same of {'; '.join(others)}", 5)


def _figures(page: Page, pair: PairVerdict, width: int, verbose: bool) -> None:
    """Every output and layer where asked for; else the layers about the one that parts."""
    if not verbose and (pair.verdict != "different" or not pair.layers):
        return
    outputs = [rows.output_row(tensor) for tensor in pair.outputs]
    shown = [rows.layer_row(layer) for layer in pair.layers]
    if not verbose:
        names = [layer.layer for layer in pair.layers]
        at = names.index(pair.first_layer) if pair.first_layer in names else 0
        start = max(0, at - _MOST_LAYERS // 2)
        outputs, shown = outputs[:_MOST_LAYERS], shown[start : start + _MOST_LAYERS]
    page.section(f"{pair.a} and {pair.b}")
    _table(page, [rows.TENSOR_COLUMNS, *outputs, *shown], width)
    if len(shown) < len(pair.layers):
        page.line(f"{' ' * _INDENT}{len(pair.layers):,} layers in all: -v shows each")


def _table(page: Page, table: Sequence[Sequence[str]], width: int) -> None:
    """Columns as wide as they need to be. On a narrow page some are left out, and names are cut."""
    columns = [list(column) for column in zip(*table, strict=True)]
    for spare in _SPARE:
        if _needed([_narrowest(column) for column in columns]) > width:
            columns = [column for column in columns if column[0] != spare]
    sizes = [max(map(len, column)) for column in columns]
    least = [_narrowest(column) for column in columns]
    while _needed(sizes) > width and sizes != least:
        room = [size if size > smallest else 0 for size, smallest in zip(sizes, least, strict=True)]
        sizes[room.index(max(room))] -= 1
    for number, row in enumerate(zip(*columns, strict=True)):
        cells = [_cut(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=True)]
        page.line(" " * _INDENT + "  ".join(cells).rstrip(), "" if number else BOLD)


def _narrowest(column: Sequence[str]) -> int:
    """Figures are not cut."""
    longest = max(map(len, column))
    return min(longest, _SHORTEST) if column[0] in _NAMES else longest


def _needed(sizes: Sequence[int]) -> int:
    return _INDENT + sum(sizes) + 2 * (len(sizes) - 1)


def _cut(text: str, room: int) -> str:
    """The end of a name tells more than its beginning."""
    return text if len(text) <= room else "…" + text[len(text) - room + 1 :]
