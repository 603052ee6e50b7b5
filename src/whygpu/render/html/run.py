"""The answer of `whygpu run`: where the program ran, its memory, and why it failed if it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.derived import display_name
from whygpu.model.policy import PartState, Repair, RunReport
from whygpu.render.html import memory_plots
from whygpu.render.html.explain import sections_of
from whygpu.render.html.markup import Child, Html, p
from whygpu.render.html.parts import (
    Section,
    Sheet,
    badge,
    cells_table,
    facts,
    items,
    sections,
)
from whygpu.render.html.profile import profile_sections
from whygpu.render.html.trace import trace_sections
from whygpu.render.run_memory import memory_rows, what_ran_out
from whygpu.render.run_text import end_text, shown_by
from whygpu.render.text_page import sentence

_STATES = {
    "in-force": ("in force", "works"),
    "not-in-force": ("not in force", "wrong"),
    "cannot-tell": ("cannot tell", "unknown"),
}


def sheet(report: RunReport) -> Sheet:
    trace = report.trace
    traced = trace_sections(trace, failed=report.exit_code != 0) if trace is not None else ()
    profiled = profile_sections(report.profile) if report.profile is not None else ()
    notes = [*report.notes, *(trace.get("notes", ()) if trace is not None else ())]
    return Sheet(
        "run",
        report.standing,
        sentence(_headline(report)),
        (f"exit code {report.exit_code}",),
        None,
        (
            *_failure(report),
            *sections(
                ("Memory that ran out", list(_memory_end(report))),
                *profiled,
                *traced,
                ("Memory over time", list(_memory(report))),
                ("The policy", _policy(report.in_force)),
                (
                    "Repaired for this run",
                    items(map(_repaired, report.repairs)),
                ),
                ("How this was counted", items(notes)),
            ),
        ),
    )


def _headline(report: RunReport) -> str:
    if report.explanation is not None and report.exit_code:
        return f"{report.explanation.headline}; {end_text(report)}"
    return end_text(report)


def _failure(report: RunReport) -> tuple[Section, ...]:
    return sections_of(report.explanation) if report.explanation is not None else ()


def _memory_end(report: RunReport) -> Iterator[Html | None]:
    end = report.out_of_memory
    if end is not None:
        yield p(sentence(what_ran_out(end)))
        yield facts(memory_rows(end, None))


def _memory(report: RunReport) -> Iterator[Html]:
    """A plot for the GPUs, and one for main memory, which has another limit."""
    curves = [curve for record in report.records for curve in record.memory.curves]
    on_gpus = memory_plots.over_time([curve for curve in curves if curve.device != "host"], None)
    if on_gpus is not None:
        yield on_gpus
    host = report.host_memory
    if host is not None:
        limit = None if host.limit is None else memory_plots.Limit("the limit", host.limit)
        plot = memory_plots.over_time([host.curve], limit)
        if plot is not None:
            yield plot


def _policy(parts: Sequence[PartState]) -> Html | None:
    rows: list[Sequence[Child]] = [
        (
            part.part,
            display_name(part.framework) if part.framework else "",
            badge(*_STATES[part.state]),
            "" if part.state == "in-force" else shown_by(part),
        )
        for part in parts
    ]
    columns = ("part", "framework", "at the end", "what shows it")
    return cells_table("The policy", columns, rows, names=("what shows it",))


def _repaired(repair: Repair) -> str:
    return f"{repair.what}: {repair.why} ({repair.code})"
