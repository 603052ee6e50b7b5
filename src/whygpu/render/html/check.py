"""The answer of `whygpu check`: the layers, what is wrong, and everything that was looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.derived import display_name, installer_of
from whygpu.model.layers import layers_of
from whygpu.model.report import FrameworkReport, Outcome, Report
from whygpu.model.snapshot import Snapshot
from whygpu.render.check_text import counted_outcomes, undetermined_reasons
from whygpu.render.examined import machine_parts
from whygpu.render.html.findings import root_cause
from whygpu.render.html.markup import Child, Html, code, join
from whygpu.render.html.parts import (
    Sheet,
    badge,
    cells_table,
    folded,
    items,
    sections,
)
from whygpu.render.html.stack import stack
from whygpu.render.load_text import load_words
from whygpu.render.text_page import sentence

_MOST_CODES = 6


def sheet(report: Report) -> Sheet:
    return Sheet(
        "check",
        report.standing,
        sentence(report.headline),
        (*machine_parts(report.snapshot), f"seen {report.snapshot.taken}"),
        stack(layers_of(report)),
        sections(
            ("What to do", list(_roots(report))),
            ("Frameworks", frameworks_table(report.frameworks)),
            ("Under load", _under_load(report.snapshot)),
            ("Could not tell", _undetermined(report)),
            ("Every check", _outcomes(report.outcomes)),
        ),
    )


def _roots(report: Report) -> Iterator[Html]:
    installer = installer_of(report.snapshot)
    for root in report.root_causes:
        followers = [each for each in report.findings if each.explained_by == root.code]
        yield root_cause(root, installer, followers)


def frameworks_table(frameworks: Sequence[FrameworkReport]) -> Html | None:
    rows: list[Sequence[Child]] = [
        (
            f"{display_name(item.name)} {item.version}".rstrip(),
            badge(item.verdict, _verdict_kind(item)),
            item.summary,
            ", ".join(item.because),
        )
        for item in frameworks
    ]
    columns = ("framework", "verdict", "what was seen", "because of")
    return cells_table("Frameworks", columns, rows, names=("what was seen",))


def _verdict_kind(item: FrameworkReport) -> str:
    """On a machine without a GPU, computing on the CPU is nothing to worry about."""
    return "" if item.verdict == "cpu" and not item.because else item.verdict


def _under_load(machine: Snapshot) -> Html | None:
    found = load_words(machine)
    rows: list[Sequence[Child]] = [(gpu.gpu, *row) for gpu in found for row in gpu.rows]
    columns = ("GPU", "what", "speed", "of the data sheet", "result")
    about = items(f"{gpu.gpu}: {'; '.join((gpu.about, *gpu.not_measured))}" for gpu in found)
    return None if about is None else join(about, cells_table("Under load", columns, rows))


def _undetermined(report: Report) -> Html | None:
    return items(
        join(f"{reason} ", code(", ".join(_first(codes))))
        for reason, codes in undetermined_reasons(report).items()
    )


def _first(codes: Sequence[str]) -> list[str]:
    """The list of every check has them all."""
    more = len(codes) - _MOST_CODES
    return [*codes[:_MOST_CODES], *([f"and {more} more"] if more > 0 else [])]


def _outcomes(outcomes: Sequence[Outcome]) -> Html:
    columns = ("code", "cause", "outcome", "reason")
    rows: list[Sequence[Child]] = [
        (each.code, each.cause, each.status.replace("-", " "), "; ".join(each.reasons[:1]))
        for each in outcomes
    ]
    return folded(
        counted_outcomes(outcomes), cells_table("Every check", columns, rows, names=("reason",))
    )
