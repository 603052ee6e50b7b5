"""What a comparison shows, each fact once: the same for the terminal and for HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from whygpu.model.comparison import ComparisonReport, LaneResult, PairVerdict, Verdict
from whygpu.model.derived import and_list
from whygpu.render import compare_rows as rows

_TOLERANCES = {"auto": "auto: what rounding explains"}
WORST_FIRST: tuple[Verdict, ...] = ("different", "undetermined", "rounding", "equal")


class PairGroup(NamedTuple):
    """A pair whose reasons are shown, and the other pairs with the same verdict."""

    pair: PairVerdict
    others: tuple[PairVerdict, ...]


class Remark(NamedTuple):
    """A remark on one or several lanes."""

    text: str
    wrong: bool
    """The lanes did not run as asked."""


def about(report: ComparisonReport) -> list[tuple[str, str]]:
    """What was compared, by name."""
    reference = report.reference
    return [
        ("what", report.what),
        ("inputs", report.inputs),
        ("tolerance", _TOLERANCES.get(report.tolerance, report.tolerance)),
        (
            "reference",
            f"float64 on the CPU, by {reference.backend}"
            if reference.ran
            else f"none: {reference.reason}",
        ),
    ]


def by_severity(pairs: Iterable[PairVerdict]) -> list[PairVerdict]:
    return sorted(pairs, key=lambda pair: WORST_FIRST.index(pair.verdict))


def alike(pairs: Iterable[PairVerdict]) -> list[PairGroup]:
    """Pairs grouped by verdict and by the place where they first differ."""
    groups: dict[tuple[object, ...], list[PairVerdict]] = {}
    for pair in by_severity(pairs):
        groups.setdefault((pair.verdict, pair.level, pair.first_layer, pair.off), []).append(pair)
    return [PairGroup(first, tuple(others)) for first, *others in groups.values()]


def reasons(pairs: Sequence[PairVerdict], *, each: bool) -> list[PairGroup]:
    """Pairs that agree are shown only if no pair differs."""
    if each:
        return [PairGroup(pair, ()) for pair in by_severity(pairs)]
    odd = [pair for pair in pairs if pair.verdict in ("different", "undetermined")]
    return alike(odd or pairs)


def title(pair: PairVerdict) -> str:
    off = f"; {pair.off} is wrong" if pair.off else ""
    return f"{pair.a} and {pair.b}: {rows.verdict_words(pair.verdict, pair.level)}{off}"


def short_title(pair: PairVerdict) -> str:
    """The verdict on a pair, without its names."""
    where = f" at {pair.first_layer}" if pair.first_layer else ""
    return f"{rows.verdict_words(pair.verdict, pair.level)}{where}"


def others_of(group: PairGroup) -> str:
    """The other pairs in words; empty where there are none."""
    if not group.others:
        return ""
    everyone = [{pair.a, pair.b} for pair in (group.pair, *group.others)]
    common = set.intersection(*everyone)
    if len(common) != 1:
        return f"the same holds for {'; '.join(f'{pair.a} and {pair.b}' for pair in group.others)}"
    (lane,) = common
    others = [pair.b if pair.a == lane else pair.a for pair in group.others]
    return f"the same holds for {lane} and {_each_of(others)}"


def _each_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"each of {and_list(names)}"


def remarks(lanes: Sequence[LaneResult]) -> list[Remark]:
    """Remarks on single lanes, worst first; a remark that holds for several lanes is made once."""
    wrong: dict[tuple[str, str], list[str]] = {}
    slower: dict[str, list[str]] = {}
    other: dict[str, list[str]] = {}
    for lane in lanes:
        name = lane.run.lane.name
        if lane.run.end != "ran":
            wrong.setdefault((rows.ENDS[lane.run.end], lane.run.reason), []).append(name)
            continue
        if lane.determinism.kind != "same":
            other.setdefault(lane.determinism.reason, []).append(name)
        if lane.speed is not None and lane.speed.slower_because:
            slower.setdefault(lane.speed.slower_because, []).append(name)
        if lane.speed is not None and lane.speed.no_measurement:
            unmeasured = f"its time (?) is no measurement: {lane.speed.no_measurement}"
            other.setdefault(unmeasured, []).append(name)
        for note in lane.run.notes:
            other.setdefault(note, []).append(name)
    found = [Remark(f"{and_list(names)} {how}: {why}", True) for (how, why), names in wrong.items()]
    for why, names in slower.items():
        verb = "is" if len(names) == 1 else "are"
        text = f"{and_list(names)} {verb} slower than the CPU here because {why}"
        found.append(Remark(text, False))
    ran = [lane for lane in lanes if lane.run.end == "ran"]
    for text, names in other.items():
        whose = "every lane" if len(names) == len(ran) > 1 else _each_of(names)
        found.append(Remark(f"{whose}: {text}", False))
    return found


def in_numbers(pairs: Sequence[PairVerdict], numbers: Mapping[str, int]) -> str:
    """Pairs by the numbers of their lanes, in short: 9 with 1-8; each two of 1-8; 1-2, 3-4."""
    edges = [(numbers[pair.a], numbers[pair.b]) for pair in pairs]
    everyone = sorted({number for edge in edges for number in edge})
    common = set.intersection(*map(set, edges))
    if len(edges) == 1:
        return f"{edges[0][0]}, {edges[0][1]}"
    if len(common) == 1:
        (lane,) = common
        return f"{lane} with {_ranges([number for number in everyone if number != lane])}"
    if len(edges) == len(everyone) * (len(everyone) - 1) // 2:
        return f"each two of {_ranges(everyone)}"
    return "; ".join(f"{a}, {b}" for a, b in edges)


def _ranges(numbers: Sequence[int]) -> str:
    """1-4, 6, 8-9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
