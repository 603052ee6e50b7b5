"""The whole answer: what differs, what of it matters, and the sentence about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from whygpu.diagnosis.engine import diagnose
from whygpu.differences.bench import Bench
from whygpu.differences.describe import values_of
from whygpu.differences.explaining import NOT_INSTALLED, Explainer, verdicts, was_run
from whygpu.differences.headline import headline_of, new_remarks, with_fewer_gpus
from whygpu.differences.relocation import moved
from whygpu.model.cause import Cause
from whygpu.model.differences import DiffAnswer, Difference, FrameworkChange, Reason, Side
from whygpu.model.observed import Known
from whygpu.model.outside_text import excerpt, one_line
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import NOT_STRESSED


class Named(NamedTuple):
    """A machine, and what the user calls it."""

    name: str
    machine: Snapshot


def answer(before: Named, after: Named, causes: Sequence[Cause]) -> DiffAnswer:
    first, second = before.machine, after.machine
    notes = []
    if was_run(first) != was_run(second):
        which = (after if was_run(first) else before).name
        notes.append(f"the frameworks were run on one side only; {which} is judged by its files")
    stressed = [side.name for side in (before, after) if isinstance(side.machine.stress, Known)]
    if len(stressed) == 1:
        notes.append(
            f"only {stressed[0]} was put under load (--stress); what that showed is not compared"
        )
        first, second = (machine._replace(stress=NOT_STRESSED) for machine in (first, second))
    if first.whygpu != second.whygpu:
        notes.append(
            f"the snapshots are from different versions of whygpu ({first.whygpu} and "
            f"{second.whygpu}); what the older one did not check cannot be compared"
        )
    reports = (diagnose(first, causes), diagnose(second, causes))
    notes += [
        f"{after.name} also has {finding.code} {finding.cause}, which is no fault but may matter: "
        f"{excerpt(one_line(finding.message))}"
        for finding in new_remarks(reports)
    ]
    relocated = moved(second, first)
    bench = Bench(first, relocated.machine)
    reasons = Explainer(bench, *reports, causes).reasons()
    differences = tuple(_described(bench, relocated.original))
    differences, reasons = _ordered(differences, reasons)
    frameworks = tuple(_framework_changes(*reports))
    sides = (_side(before, reports[0]), _side(after, reports[1]))
    headline, standing = headline_of(sides, reports, frameworks, differences, reasons)
    headline, standing = with_fewer_gpus(headline, standing, reports)
    return DiffAnswer(
        before=sides[0],
        after=sides[1],
        frameworks=frameworks,
        differences=differences,
        reasons=reasons,
        headline=headline,
        standing=standing,
        notes=tuple(notes),
        trials=bench.trials,
    )


def _side(named: Named, report: Report) -> Side:
    machine = named.machine
    return Side(
        name=named.name,
        taken=machine.taken,
        whygpu=machine.whygpu,
        verdict=report.verdict,
        headline=report.headline,
        was_run=was_run(machine),
    )


def _framework_changes(before: Report, after: Report) -> Iterable[FrameworkChange]:
    first, second = verdicts(before), verdicts(after)
    for name in {**first, **second}:
        one, other = first.get(name), second.get(name)
        yield FrameworkChange(
            name,
            NOT_INSTALLED if one is None else one.verdict,
            NOT_INSTALLED if other is None else other.verdict,
        )


def _described(bench: Bench, original: Callable[[str], str]) -> Iterable[Difference]:
    for item in bench.differences:
        before, after = values_of(item, (bench.before, bench.after))
        yield Difference(
            kind=item.fact.kind,
            name=item.fact.name,
            before=before,
            after=original(after),
            comparable=item.comparable,
            places=tuple(leaf.place for leaf in item.leaves),
        )


_KINDS = (
    "driver",
    "gpu",
    "device-node",
    "container",
    "variable",
    "python",
    "keras",
    "library",
    "toolkit",
    "package",
    "system",
    "moment",
)


def _ordered(
    differences: tuple[Difference, ...], reasons: tuple[Reason, ...]
) -> tuple[tuple[Difference, ...], tuple[Reason, ...]]:
    """Those that explain something first, in the order of the reasons; then suspects."""
    named: dict[int, None] = {}
    for reason in reasons:
        for each in (*reason.sets, reason.suspects):
            named.update(dict.fromkeys(each))
    rest = sorted(
        (place for place in range(len(differences)) if place not in named),
        key=lambda place: (
            not differences[place].comparable,
            _KINDS.index(differences[place].kind),
            differences[place].name,
        ),
    )
    order = [*named, *rest]
    new = {old: position for position, old in enumerate(order)}
    return tuple(differences[place] for place in order), tuple(
        reason._replace(
            sets=tuple(tuple(sorted(new[place] for place in each)) for each in reason.sets),
            suspects=tuple(new[place] for place in reason.suspects),
        )
        for reason in reasons
    )
