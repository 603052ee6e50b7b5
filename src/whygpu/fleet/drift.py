"""Which machines are not like the others: facts that differ between comparable nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from whygpu.model.fleet import Drift, FactName, NodeReport, OddValue, Shared, UnknownFacts
from whygpu.model.observed import Known, Observed, Unknown

FACTS: tuple[FactName, ...] = get_args(FactName)
NO_GPU = "no GPU"
MOST_SHARED = 4

Values = Mapping[FactName, Observed[str]]


def drift_of(reports: Sequence[NodeReport]) -> tuple[Drift, ...]:
    """Every fact that differs between comparable nodes; facts in their order."""
    hardware = _hardware(reports)
    facts = {report.node: _by_name(report) for report in reports}
    found: list[Drift] = []
    for name in FACTS:
        groups: dict[str, list[str]] = defaultdict(list)
        for report in reports:
            # GPUs are compared between machines that should have the same ones.
            among = report.chassis if name == "GPUs" else hardware.get(report.node)
            if among is not None:
                groups[among].append(report.node)
        for among, nodes in sorted(groups.items()):
            drift = _compared(name, among, nodes, facts)
            if drift is not None:
                found.append(drift)
    return tuple(found)


def _by_name(report: NodeReport) -> dict[FactName, Observed[str]]:
    return {fact.name: fact.value for fact in report.facts}


def _hardware(reports: Sequence[NodeReport]) -> dict[str, str]:
    """What GPUs each node has. If its driver does not answer, what all others of its chassis have;
    a node for which that does not decide is not compared."""
    by_chassis: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        if isinstance(report.gpus, Known):
            by_chassis[report.chassis].add(report.gpus.value)
    found: dict[str, str] = {}
    for report in reports:
        likely = by_chassis[report.chassis]
        if isinstance(report.gpus, Known):
            found[report.node] = report.gpus.value
        elif len(likely) == 1:
            found[report.node] = next(iter(likely))
        elif not likely:
            found[report.node] = NO_GPU
    return found


def _compared(
    name: FactName, among: str, nodes: Iterable[str], facts: Mapping[str, Values]
) -> Drift | None:
    values: dict[str, list[str]] = defaultdict(list)
    unknown = 0
    for node in nodes:
        fact = facts[node].get(name)
        if isinstance(fact, Known):
            values[fact.value].append(node)
        else:
            unknown += 1
    if len(values) < 2:
        return None
    compared = sum(map(len, values.values()))
    most = max(values, key=lambda value: len(values[value]))
    # If one half of a fleet is new, neither half is the odd one.
    usual = most if 3 * len(values[most]) >= 2 * compared else None
    others = [
        OddValue(value, tuple(sorted(nodes))) for value, nodes in values.items() if value != usual
    ]
    return Drift(
        fact=name,
        among=among,
        compared=compared,
        usual=usual,
        usual_nodes=len(values[usual]) if usual is not None else 0,
        others=tuple(sorted(others, key=lambda odd: (len(odd.nodes), odd.value))),
        unknown=unknown,
    )


def unknown_facts(reports: Sequence[NodeReport]) -> tuple[UnknownFacts, ...]:
    """What is not known of some nodes, and why. Without it, no difference would mean no fault."""
    nodes: dict[tuple[str, FactName], list[str]] = defaultdict(list)
    for report in reports:
        for fact in report.facts:
            if isinstance(fact.value, Unknown):
                nodes[fact.value.reason, fact.name].append(report.node)
    facts: dict[tuple[str, tuple[str, ...]], list[FactName]] = defaultdict(list)
    for (reason, name), found in nodes.items():
        facts[reason, tuple(found)].append(name)
    rows = (UnknownFacts(reason, tuple(names), which) for (reason, which), names in facts.items())
    return tuple(sorted(rows, key=lambda row: (-len(row.nodes), row.reason, row.facts)))


def shared_by(nodes: Iterable[str], reports: Sequence[NodeReport]) -> tuple[Shared, ...]:
    """Facts that these nodes have in common and that no other node is known to have."""
    inside = frozenset(nodes)
    values: dict[FactName, set[str]] = defaultdict(set)
    others: dict[FactName, set[str]] = defaultdict(set)
    unknown_inside: set[FactName] = set()
    unknown_outside: Counter[FactName] = Counter()
    for report in reports:
        is_inside = report.node in inside
        for fact in report.facts:
            if isinstance(fact.value, Known):
                (values if is_inside else others)[fact.name].add(fact.value.value)
            elif is_inside:
                unknown_inside.add(fact.name)
            else:
                unknown_outside[fact.name] += 1
    found = [
        Shared(name, next(iter(values[name])), unknown_outside[name])
        for name in FACTS
        if len(values[name]) == 1 and name not in unknown_inside
        if others[name] and values[name].isdisjoint(others[name])
    ]
    return tuple(found[:MOST_SHARED])
