"""A comparison for people: the verdict, why, what to do about it, and then the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from whygpu.model.comparison import (
    STANDINGS,
    ComparisonReport,
    LaneResult,
    PairVerdict,
    Verdict,
)
from whygpu.model.standing import Standing
from whygpu.render import compare_rows as rows
from whygpu.render import compare_summary as summary
from whygpu.render.compare_advice import advice
from whygpu.render.compare_table import INDENT, fits, table
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, CYAN, GREEN, RED, YELLOW, Page

PLAIN_SIGNS = str.maketrans({"±": "~", "µ": "u"})
"""ASCII characters of the same width, for a terminal without the others."""
_STYLES: dict[Verdict, str] = {
    "equal": GREEN,
    "rounding": GREEN,
    "different": RED,
    "undetermined": YELLOW,
}
_MOST_PAIRS = 6
"""More pairs than this are grouped by verdict."""
_MOST_LAYERS = 5
_NUMBERED = "# lane"
_NAMES = ("name", "kind", "lanes", "worst in", "first at", "on", "lane", _NUMBERED, "of rounding")
_IN_SHORT = ("name", "kind", "largest", "relative", "of rounding")
_HERE = " > "
"""Marks the row at which two lanes first differ."""
Item = TypeVar("Item")
_UNKNOWN = rows.STEADY["unknown"]


def render(
    report: ComparisonReport,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    headline(page, report.standing, report.headline, marks)
    explained = summary.reasons(report.pairs, each=verbose)
    if explained or report.notes:
        page.section("Because")
    for each in explained:
        _reasons(page, each, marks)
    for note in () if explained else report.notes:
        page.item(note)
    to_do = advice(report)
    if to_do:
        page.section("What to do")
        for text in to_do:
            page.item(text)
    _figures(page, report, explained, width, verbose)
    page.section("Compared")
    for name, text in summary.about(report):
        page.hanging(f"{' ' * INDENT}{name}", text, INDENT + 11)
    for note in report.notes if explained else ():
        page.hanging(f"{' ' * INDENT}note", note, INDENT + 11)
    return page.text()


def _reasons(page: Page, each: summary.PairGroup, marks: Mapping[Standing, str]) -> None:
    verdict = each.pair.verdict
    page.hanging(
        f" {marks[STANDINGS[verdict]]}", summary.title(each.pair), INDENT, _STYLES[verdict]
    )
    for reason in (*each.pair.reasons, summary.others_of(each)):
        if reason:
            page.item(reason)


def _figures(
    page: Page,
    report: ComparisonReport,
    explained: Sequence[summary.PairGroup],
    width: int,
    verbose: bool,
) -> None:
    together = len(report.pairs) > _MOST_PAIRS and not verbose
    named = not together and _names_fit(report.pairs, width)
    lanes = [lane.run.lane.name for lane in report.lanes]
    numbers = {} if named else {name: number for number, name in enumerate(lanes, 1)}
    page.section("Lanes")
    _lanes(page, report.lanes, width, numbers)
    if report.pairs:
        page.section("Differences")
        _pairs(page, report.pairs, numbers, width, together)
    for each in explained:
        if verbose or each.pair.verdict == "different":
            _tensors(page, each.pair, width, verbose)


def _names_fit(pairs: Sequence[PairVerdict], width: int) -> bool:
    """Whether the table of pairs has room for the names of lanes; otherwise they get numbers."""
    if len(pairs) <= 1:
        return True
    names, head = rows.short_names(pairs), rows.PAIR_COLUMNS
    cells = [rows.pair_row(pair, f"{names[pair.a]}, {names[pair.b]}") for pair in pairs]
    # The last two are names that may be wrapped to the width of this title.
    most = len(head[-1])
    return fits(head, [(*row[:-2], row[-2][:most], row[-1][:most]) for row in cells], width)


def _lanes(page: Page, lanes: Sequence[LaneResult], width: int, numbers: Mapping[str, int]) -> None:
    ran = [lane for lane in lanes if lane.run.end == "ran"]
    head, cells = rows.LANE_COLUMNS, rows.lane_rows(ran)
    common = []
    for column, words in (
        ("on", "all ran on the {}"),
        ("repeats", "run twice, each lane repeats {}"),
    ):
        values = {row[head.index(column)] for row in cells}
        if len(values) == 1 and len(cells) > 1 and values != {_UNKNOWN}:
            common.append(words.format(*values))
            cells = [_without(row, head.index(column)) for row in cells]
            head = _without(head, head.index(column))
    if numbers:
        head = (_NUMBERED, *head[1:])
        cells = [(f"{numbers[row[0]]} {row[0]}", *row[1:]) for row in cells]
    if cells:
        _table(page, head, cells, width)
    gpus = rows.gpus(ran)
    if len(gpus) == 1:
        common.append(f"the GPU is {gpus[0]}")
    if common:
        page.item("; ".join(common))
    for remark in summary.remarks(lanes):
        page.item(remark.text, YELLOW if remark.wrong else "")


def _without(cells: tuple[str, ...], place: int) -> tuple[str, ...]:
    return (*cells[:place], *cells[place + 1 :])


def _pairs(
    page: Page, pairs: Sequence[PairVerdict], numbers: Mapping[str, int], width: int, together: bool
) -> None:
    groups = (
        summary.alike(pairs)
        if together
        else [summary.PairGroup(p, ()) for p in summary.by_severity(pairs)]
    )
    names = rows.short_names(pairs)
    cells, styles = [], []
    for group in groups:
        members = (group.pair, *group.others)
        worst = max(members, key=rows.pair_weight)
        lanes = f"{names[worst.a]}, {names[worst.b]}"
        cells.append(
            rows.pair_row(worst, summary.in_numbers(members, numbers) if numbers else lanes)
        )
        styles.append(_STYLES[worst.verdict] if worst.verdict != "rounding" else "")
    _table(page, rows.PAIR_COLUMNS, cells, width, styles)
    if together:
        text = f"{len(pairs)} pairs, the worst of each row: -v shows each"
        page.hanging("", text, INDENT)


def _tensors(page: Page, pair: PairVerdict, width: int, verbose: bool) -> None:
    """Every output and layer if verbose; else those near the first difference."""
    outputs, layers = list(pair.outputs), list(pair.layers)
    if not verbose:
        outputs = _about(outputs, [each.name for each in outputs], pair.first_layer)
        layers = _about(layers, [each.layer for each in layers], pair.first_layer)
    cells = [*map(rows.output_row, outputs), *map(rows.layer_row, layers)]
    names = [*(each.name for each in outputs), *(each.layer for each in layers)]
    head = rows.TENSOR_COLUMNS
    if not verbose:
        kept = [head.index(name) for name in _IN_SHORT]
        head = _IN_SHORT
        cells = [tuple(row[place] for place in kept) for row in cells]
    if not cells:
        return
    page.line()
    page.paragraph(f"{pair.a} and {pair.b}:", CYAN)
    here = names.index(pair.first_layer) if pair.first_layer in names else None
    styles = [_STYLES[pair.verdict] if number == here else "" for number in range(len(cells))]
    _table(page, head, cells, width, styles, here)
    left = len(pair.outputs) + len(pair.layers) - len(cells)
    if left:
        page.hanging("", f"{left:,} more: -v shows each, --html draws them", INDENT)


def _about(items: list[Item], names: Sequence[str], name: str | None) -> list[Item]:
    at = names.index(name) if name in names else 0
    start = max(0, at - _MOST_LAYERS // 2)
    return items[start : start + _MOST_LAYERS]


def _table(
    page: Page,
    head: Sequence[str],
    cells: Sequence[Sequence[str]],
    width: int,
    styles: Sequence[str] = (),
    here: int | None = None,
) -> None:
    top, *blocks = table(head, cells, width, _NAMES)
    for line in top:
        page.line(line, BOLD)
    for number, lines in enumerate(blocks):
        first, *rest = lines
        if number == here:
            first = _HERE + first[INDENT:]
        for line in (first, *rest):
            page.line(line, styles[number] if styles else "")
