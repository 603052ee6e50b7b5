"""The answer of `whygpu memory find`: the largest batch, and every trial."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.batch import BatchResult
from whygpu.render.html import memory_plots
from whygpu.render.html.markup import Child, Html
from whygpu.render.html.parts import Sheet, badge, cells_table, items, lines, sections
from whygpu.render.memory_find import (
    LINES_OF_TRACEBACK,
    figures,
    is_measured,
    remarks_on,
    setting,
    shares_processes,
    summary,
)

_OUTCOMES = {"fits": "works", "does-not-fit": "wrong", "leaks": "wrong"}


def sheet(result: BatchResult) -> Sheet:
    tried = "Tried" if shares_processes(result) else "Tried, each in its own process"
    traceback = result.traceback.rstrip().splitlines()[-LINES_OF_TRACEBACK:]
    return Sheet(
        "memory find",
        result.standing,
        summary(result),
        (setting(result),),
        None,
        sections(
            ("Memory by batch", memory_plots.by_batch(result)),
            (tried, _trials(result)),
            ("Good to know", items([*remarks_on(result), *result.notes])),
            ("The failure", lines(traceback) if traceback else None),
        ),
    )


def _trials(result: BatchResult) -> Html | None:
    rows: list[Sequence[Child]] = [
        (
            f"{trial.batch:,}",
            *(figures(trial, result) if is_measured(trial) else ("", "", "")),
            badge(trial.outcome.replace("-", " "), _OUTCOMES.get(trial.outcome, "unknown")),
            trial.how,
        )
        for trial in result.trials
    ]
    columns = ("batch", "memory", "a step", "samples/s", "outcome", "why")
    return cells_table("Trials", columns, rows, figures=columns[1:4], names=("why",))
