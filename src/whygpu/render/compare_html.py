"""A comparison as one HTML file, without external parts: verdict, reasons, plots and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from whygpu.model.comparison import ComparisonReport, PairVerdict
from whygpu.render import compare_plots as plots
from whygpu.render import compare_rows as rows
from whygpu.render import compare_summary as summary
from whygpu.render import compare_svg as svg
from whygpu.render.compare_advice import advice
from whygpu.render.compare_style import POLICY, STYLE
from whygpu.render.compare_table import without_empty_columns

_FIGURES = {
    *("one call", "first call", "speed", "peak", "largest", "relative", "ULPs", "cosine"),
    *("NaN, inf", "of rounding"),
}
"""Columns whose digits are aligned."""
_NAMES = {"kind", "worst in", "first at"}
"""Columns that may be wrapped."""


def render(report: ComparisonReport, version: str) -> str:
    """`version` is whygpu's."""
    body = "\n".join(_body(report, version))
    title = escape(f"{report.verdict}: {report.what} (whygpu compare)")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _body(report: ComparisonReport, version: str) -> Iterator[str]:
    verdict = report.verdict
    yield f'<p class="verdict {verdict}">{verdict}</p>'
    yield f"<h1>{escape(report.headline)}</h1>"
    yield f'<p class="soft">{escape(report.what)}; inputs: {escape(report.inputs)}</p>'
    yield from _why(report)
    to_do = advice(report)
    if to_do:
        yield f"<h2>What to do</h2>{_list(to_do)}"
    yield from _layers(report.pairs)
    if report.pairs:
        yield "<h2>Differences</h2>"
        yield "<p>Each pair of lanes, with the result that differs most.</p>"
        yield _pairs(report.pairs)
    yield from _lanes(report)
    if report.pairs:
        yield "<h2>Every result and layer</h2>"
    for pair in summary.by_severity(report.pairs):
        yield from _pair(pair)
    yield "<h2>How it was compared</h2>"
    yield _about(report, version)


def _why(report: ComparisonReport) -> Iterator[str]:
    explained = summary.reasons(report.pairs, each=False)
    if explained or report.notes:
        yield "<h2>Because</h2>"
    if not explained:
        yield _list(report.notes)
    for each in explained:
        yield f'<h3 class="{each.pair.verdict}">{escape(summary.title(each.pair))}</h3>'
        yield _list([text for text in (*each.pair.reasons, summary.others_of(each)) if text])


def _layers(pairs: Sequence[PairVerdict]) -> Iterator[str]:
    plot = plots.by_layer(pairs) if pairs else ""
    if not plot:
        return
    yield "<h2>Difference of each layer by itself</h2>"
    yield (
        "<p>Every layer gets the same input on both lanes, so differences of earlier layers are "
        "not counted. Point at a mark to see its layer.</p>"
    )
    yield f"<figure>{plot}{_legend(plots.curves(pairs))}</figure>"


def _legend(curves: Sequence[plots.Curve]) -> str:
    items = "".join(
        f'<li><svg class="key" viewBox="0 0 14 14" aria-hidden="true">'
        f"{svg.mark(7, 7, 4.5, number, '')}</svg>{escape(curve.name)}</li>"
        for number, curve in enumerate(curves)
    )
    return f'<figcaption><ul class="legend">{items}</ul></figcaption>'


def _pairs(pairs: Sequence[PairVerdict]) -> str:
    ordered = summary.by_severity(pairs)
    cells = [rows.pair_row(pair, f"{pair.a}, {pair.b}") for pair in ordered]
    return _table(rows.PAIR_COLUMNS, cells, [pair.verdict for pair in ordered])


def _lanes(report: ComparisonReport) -> Iterator[str]:
    ran = [lane for lane in report.lanes if lane.run.end == "ran"]
    yield "<h2>Lanes</h2>"
    yield _table(rows.LANE_COLUMNS, rows.lane_rows(ran))
    remarks = [remark.text for remark in summary.remarks(report.lanes)]
    gpus = rows.gpus(ran)
    yield _list([*([f"the GPU is {gpus[0]}"] if len(gpus) == 1 else []), *remarks])
    times = plots.by_lane(report.lanes)
    if times:
        yield f"<h3>Time of one call</h3><figure>{times}"
        yield (
            "<figcaption>A bar is the median; the line in it spans the middle half of the calls. "
            "The vertical line is the first call, with compilation.</figcaption></figure>"
        )


def _pair(pair: PairVerdict) -> Iterator[str]:
    names = [*(each.name for each in pair.outputs), *(each.layer for each in pair.layers)]
    cells = [*map(rows.output_row, pair.outputs), *map(rows.layer_row, pair.layers)]
    here = ["here" if name == pair.first_layer else "" for name in names]
    yield (
        f'<details><summary><span class="{pair.verdict}">{escape(summary.title(pair))}</span> '
        f'<span class="soft">({_counted(pair.outputs, "result")}, '
        f"{_counted(pair.layers, 'layer')})</span>"
        "</summary>"
    )
    yield _list(pair.reasons)
    yield _table(rows.TENSOR_COLUMNS, cells, here)
    yield "</details>"


def _counted(things: Sequence[object], name: str) -> str:
    return f"{len(things):,} {name}" + ("" if len(things) == 1 else "s")


def _about(report: ComparisonReport, version: str) -> str:
    entries = [*summary.about(report), *(("note", note) for note in report.notes)]
    entries.append(("by", f"whygpu {version}"))
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in entries)
    return f"<dl>{terms}</dl>"


def _table(
    columns: Sequence[str], cells: Sequence[Sequence[str]], classes: Sequence[str] = ()
) -> str:
    if not cells:
        return ""
    names, *kept = without_empty_columns(columns, cells)
    kinds = [_kind(name) for name in names]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>'
        for name, kind in zip(names, kinds, strict=True)
    )
    body = "".join(
        _row(row, kinds, classes[number] if classes else "") for number, row in enumerate(kept)
    )
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _kind(column: str) -> str:
    if column in _FIGURES:
        return ' class="figure"'
    return ' class="name"' if column in _NAMES else ""


def _row(cells: Sequence[str], kinds: Sequence[str], named: str) -> str:
    first, *others = [escape(cell) for cell in cells]
    rest = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
    whole = f' class="{named}"' if named else ""
    return f'<tr{whole}><th scope="row">{first}</th>{rest}</tr>\n'


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>" if items else ""
