"""Where the operations of a run were executed: shares by device, each operation, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whygpu.render.html import svg
from whygpu.render.html.markup import Child, Html, p
from whygpu.render.html.parts import cells_table, folded, items, note
from whygpu.render.text_page import sentence
from whygpu.render.trace_text import (
    FUNCTION,
    folded_lines,
    function_lines,
    moved,
    nothing_ran,
    reason_lines,
    seconds_text,
    shares_text,
)

_MOST_ROWS = 200
_FEW_ROWS = 25
"""With more operations than this, the table is folded."""


def trace_sections(trace: Mapping[str, Any], *, failed: bool) -> Iterator[tuple[str, Child]]:
    """`trace` as trace_merge returns it; `failed`: the program did not end well."""
    yield "Where the operations ran", list(_placement(trace, failed))
    yield "On the CPU because", items(reason_lines(trace["on_cpu_because"]))
    yield "Transfers between devices", _transfers(trace)


def _placement(trace: Mapping[str, Any], failed: bool) -> Iterator[Html | None]:
    functions = [op for op in trace["ops"] if op["op"].startswith(FUNCTION)]
    ops = [op for op in trace["ops"] if not op["op"].startswith(FUNCTION)]
    if ops:
        yield p(sentence(shares_text(ops)))
        yield _shares(ops)
        yield _operations(ops)
    else:
        yield p(sentence(nothing_ran(trace, failed)))
        yield items(trace.get("nothing_because", ()))
    if functions:
        timed = items(line.strip(" -") for line in function_lines(functions))
        yield folded("Timed as a whole", timed)
    if trace.get("folded"):
        title = "Folded into constants before the first run, so that they never ran"
        yield folded(title, items(folded_lines(trace["folded"])))


def _shares(ops: Sequence[Mapping[str, Any]]) -> Html:
    counts: dict[str, int] = {}
    for op in ops:
        kind = _bar_kind(op["device"])
        counts[kind] = counts.get(kind, 0) + op["count"]
    total = sum(counts.values()) or 1
    order = [kind for kind in ("bar-gpu", "bar-cpu", "bar-other") if kind in counts]
    return svg.bar([(counts[kind] / total, kind) for kind in order])


def _bar_kind(device: str) -> str:
    if device.startswith("gpu"):
        return "bar-gpu"
    return "bar-cpu" if device.startswith("cpu") else "bar-other"


def _operations(ops: Sequence[Mapping[str, Any]]) -> Html:
    ordered = sorted(ops, key=lambda op: -op["count"])
    most = ordered[0]["count"] or 1
    rows: list[Sequence[Child]] = [
        (
            op["op"],
            op["device"],
            f"{op['count']:,}",
            svg.bar([(op["count"] / most, _bar_kind(op["device"]))]),
            seconds_text(op["seconds"]),
        )
        for op in ordered[:_MOST_ROWS]
    ]
    columns = ("operation", "device", "count", "how often", "seconds")
    table = cells_table("Operations", columns, rows, figures=("count", "seconds"))
    more = len(ordered) - _MOST_ROWS
    hidden = note(f"{more:,} rarer ones are in the file of --report.") if more > 0 else None
    title = f"{len(ordered):,} operations, the most frequent first"
    return folded(title, [table, hidden], is_open=len(ordered) <= _FEW_ROWS)


def _transfers(trace: Mapping[str, Any]) -> Html | None:
    return items(
        f"{each['source']} to {each['target']}: {moved(each)}"
        for each in trace.get("transfers", ())
    )
