"""A comparison as one HTML file: tables, plots and reasons, with nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from whygpu.model.comparison import ComparisonReport, LaneResult, PairVerdict
from whygpu.render import compare_plots as plots
from whygpu.render import compare_rows as rows
from whygpu.version import VERSION

_STYLE = """
:root { color-scheme: light dark; --text: #1c1f23; --back: #fff; --soft: #5c6670; --rule: #d7dce1;
  --good: #1a7f37; --bad: #cf222e; --open: #9a6700; --bar: #4a7fb5; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ec; --back: #16191d; --soft: #9aa4ae;
  --rule: #343b42; --good: #4ac26b; --bad: #ff7b72; --open: #d4a72c; --bar: #6ba3dc; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 900px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.3em; } h2 { font-size: 1.05em; margin-top: 2em; }
.equal, .rounding { color: var(--good); } .different { color: var(--bad); }
.undetermined { color: var(--open); } .soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92em; }
th, td { text-align: left; padding: 0.2em 1em 0.2em 0; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.grid { stroke: var(--rule); stroke-width: 1; } .limit { stroke: var(--bad); stroke-width: 1.5;
  stroke-dasharray: 5 4; } .bar { fill: var(--bar); } .spread { stroke: var(--text); }
polyline { fill: none; stroke-width: 1.2; stroke-opacity: 0.7; }
ul.legend { list-style: none; padding: 0; } ul.legend li { display: inline-block;
  margin-right: 1.5em; } ul.legend b { font-weight: 900; }
"""
_HUES = (212, 24, 140, 280, 50, 180, 330, 0)


def render(report: ComparisonReport) -> str:
    body = "\n".join(_body(report))
    title = escape(f"whygpu compare: {report.what}")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width"/>\n'
        f"<title>{title}</title>\n<style>{_STYLE}{_line_styles()}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _line_styles() -> str:
    return "\n".join(
        f".line{number} {{ stroke: hsl({hue} 60% 50%); }} "
        f".dot{number} {{ fill: hsl({hue} 60% 50%); color: hsl({hue} 60% 50%); }}"
        for number, hue in enumerate(_HUES[: plots.COLORS])
    )


def _body(report: ComparisonReport) -> Iterator[str]:
    yield f'<h1 class="{report.verdict}">{escape(report.headline)}</h1>'
    yield from _about(report)
    yield "<h2>Lanes</h2>"
    yield _table(
        rows.LANE_COLUMNS, [rows.lane_row(lane) for lane in report.lanes if lane.run.end == "ran"]
    )
    yield _list([text for lane in report.lanes for text in _said_of(lane)])
    times = plots.by_lane(report.lanes)
    if times:
        yield f"<h2>Time of one call, by lane</h2>{times}"
    if report.pairs:
        yield "<h2>Differences</h2>"
        yield _table(rows.PAIR_COLUMNS, rows.pair_rows(report.pairs))
    differences = plots.by_layer(report.pairs) if report.pairs else ""
    if differences:
        yield "<h2>Difference of each layer by itself, in units of what rounding explains</h2>"
        yield differences
        yield _legend(plots.legend(report.pairs))
    for pair in report.pairs:
        yield from _pair(pair)
    yield _list(list(report.notes))
    yield f'<p class="soft">whygpu {escape(VERSION)}</p>'


def _about(report: ComparisonReport) -> Iterator[str]:
    reference = report.reference
    said = (
        f"reference float64 on the CPU ({reference.backend})"
        if reference.ran
        else f"no float64 reference: {reference.reason}"
    )
    text = f"{report.what}; inputs {report.inputs}; tolerance {report.tolerance}; {said}"
    yield f'<p class="soft">{escape(text)}</p>'


def _said_of(lane: LaneResult) -> Iterator[str]:
    name = lane.run.lane.name
    if lane.run.end != "ran":
        yield f"{name} {rows.ENDS[lane.run.end]}: {lane.run.reason}"
        return
    if lane.determinism.kind != "same":
        yield f"{name}: {lane.determinism.reason}"
    if lane.speed is not None and lane.speed.slower_because:
        yield rows.slower(lane)
    for note in lane.run.notes:
        yield f"{name}: {note}"


def _legend(entries: Sequence[tuple[str, int]]) -> str:
    items = "".join(
        f'<li><b class="dot{number}">●</b> {escape(name)}</li>' for name, number in entries
    )
    return f'<ul class="legend">{items}</ul>'


def _pair(pair: PairVerdict) -> Iterator[str]:
    said = rows.verdict_words(pair.verdict, pair.level)
    off = f"; {pair.off} is off" if pair.off else ""
    title = escape(f"{pair.a} and {pair.b}: {said}{off}")
    yield f'<h2 class="{pair.verdict}">{title}</h2>'
    yield _list(pair.reasons)
    yield _table(rows.TENSOR_COLUMNS, [rows.output_row(tensor) for tensor in pair.outputs])
    if pair.layers:
        yield f"<details><summary>{len(pair.layers):,} layers</summary>"
        yield _table(rows.TENSOR_COLUMNS, [rows.layer_row(layer) for layer in pair.layers])
        yield "</details>"


def _table(columns: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    if not table:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in table
    )
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}</table></div>'


def _list(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>" if items else ""
