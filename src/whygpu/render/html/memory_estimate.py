"""The answer of `whygpu memory estimate`: what a model needs, by what takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.estimate import BatchMemory, MemoryEstimate
from whygpu.model.units import size_text
from whygpu.render.html import svg
from whygpu.render.html.markup import Child, Html, b
from whygpu.render.html.parts import Sheet, cells_table, items, lines, sections
from whygpu.render.memory_estimate import (
    fitting_lines,
    note_lines,
    own_lines,
    peak_rows,
    peak_title,
    summary,
)


def sheet(estimate: MemoryEstimate) -> Sheet:
    return Sheet(
        "memory estimate",
        estimate.standing,
        summary(estimate),
        sections=sections(*_sections(estimate)),
    )


def _sections(estimate: MemoryEstimate) -> Iterator[tuple[str, Child]]:
    if estimate.at is None:
        where = own_lines(estimate.traceback)
        yield "Where", lines(where) if where else None
        return
    yield peak_title(estimate.at), _parts(estimate, estimate.at)
    if estimate.room is not None:
        yield "What fits", items(fitting_lines(estimate))
    yield "Where this comes from", items(note_lines(estimate))


def _parts(estimate: MemoryEstimate, at: BatchMemory) -> Html | None:
    total = max(estimate.total_bytes or 0, 1)
    rows: list[Sequence[Child]] = [
        (
            b(row.name) if row.is_sum else row.name,
            size_text(row.bytes),
            svg.bar([(row.bytes / total, "bar-other" if row.is_sum else "bar")]),
            row.text,
        )
        for row in peak_rows(estimate, at)
    ]
    columns = ("what", "memory", "of the total", "how it is known")
    return cells_table(
        peak_title(at), columns, rows, figures=("memory",), names=("how it is known",)
    )
