"""The answer of `whygpu compare`: verdict, reasons, plots and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.comparison import ComparisonReport, PairVerdict
from whygpu.model.figures import counted
from whygpu.render import compare_rows as rows
from whygpu.render import compare_summary as summary
from whygpu.render.compare_advice import advice
from whygpu.render.html import compare_plots as plots
from whygpu.render.html import svg
from whygpu.render.html.markup import Html, figcaption, figure, h3, li, p, span, ul
from whygpu.render.html.parts import Sheet, cells_table, facts, folded, items, sections

_FIGURES = {
    *("one call", "first call", "speed", "peak", "largest", "relative", "ULPs", "cosine"),
    *("NaN, inf", "of rounding"),
}
"""Columns whose digits are aligned."""
_NAMES = {"kind", "worst in", "first at"}
"""Columns that may be wrapped."""


def sheet(report: ComparisonReport) -> Sheet:
    return Sheet(
        "compare",
        report.standing,
        report.headline,
        (report.what, f"inputs: {report.inputs}"),
        None,
        sections(
            ("Because", list(_why(report))),
            ("What to do", items(advice(report))),
            ("Difference of each layer by itself", list(_layers(report.pairs))),
            ("Differences", list(_pairs(report.pairs))),
            ("Lanes", list(_lanes(report))),
            ("Every result and layer", [_pair(pair) for pair in summary.by_severity(report.pairs)]),
            ("How it was compared", _about(report)),
        ),
    )


def _why(report: ComparisonReport) -> Iterator[Html | None]:
    explained = summary.reasons(report.pairs, each=False)
    if not explained:
        yield items(report.notes)
    for each in explained:
        yield h3(summary.title(each.pair), kind=each.pair.verdict)
        yield items(text for text in (*each.pair.reasons, summary.others_of(each)) if text)


def _layers(pairs: Sequence[PairVerdict]) -> Iterator[Html]:
    plot = plots.by_layer(pairs) if pairs else None
    if plot is None:
        return
    yield p(
        "Every layer gets the same input on both lanes, so differences of earlier layers are not "
        "counted. Point at a mark to see its layer."
    )
    yield figure(plot, _legend(plots.curves(pairs)))


def _legend(curves: Sequence[plots.Curve]) -> Html:
    entries = [li(svg.key(number), curve.name) for number, curve in enumerate(curves)]
    return figcaption(ul(entries, kind="legend"))


def _pairs(pairs: Sequence[PairVerdict]) -> Iterator[Html | None]:
    if not pairs:
        return
    ordered = summary.by_severity(pairs)
    yield p("Each pair of lanes, with the result that differs most.")
    yield _table(
        "Differences",
        rows.PAIR_COLUMNS,
        [rows.pair_row(pair, f"{pair.a}, {pair.b}") for pair in ordered],
        [pair.verdict for pair in ordered],
    )


def _lanes(report: ComparisonReport) -> Iterator[Html | None]:
    ran = [lane for lane in report.lanes if lane.run.end == "ran"]
    yield _table("Lanes", rows.LANE_COLUMNS, rows.lane_rows(ran))
    remarks = [remark.text for remark in summary.remarks(report.lanes)]
    gpus = rows.gpus(ran)
    yield items([*([f"the GPU is {gpus[0]}"] if len(gpus) == 1 else []), *remarks])
    times = plots.by_lane(report.lanes)
    if times is not None:
        yield h3("Time of one call")
        yield figure(
            times,
            figcaption(
                "A bar is the median; the line in it spans the middle half of the calls. The "
                "vertical line is the first call, with compilation."
            ),
        )


def _pair(pair: PairVerdict) -> Html:
    names = [*(each.name for each in pair.outputs), *(each.layer for each in pair.layers)]
    cells = [*map(rows.output_row, pair.outputs), *map(rows.layer_row, pair.layers)]
    here = ["here" if name == pair.first_layer else "" for name in names]
    counts = f"({counted(len(pair.outputs), 'result')}, {counted(len(pair.layers), 'layer')})"
    return folded(
        [span(summary.title(pair), kind=pair.verdict), " ", span(counts, kind="soft")],
        [items(pair.reasons), _table(summary.title(pair), rows.TENSOR_COLUMNS, cells, here)],
    )


def _about(report: ComparisonReport) -> Html | None:
    return facts([*summary.about(report), *(("note", note) for note in report.notes)])


def _table(
    title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], classes: Sequence[str] = ()
) -> Html | None:
    return cells_table(title, columns, cells, classes=classes, figures=_FIGURES, names=_NAMES)
