"""One report about many nodes, from the judgement on each of them. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import get_args

from whygpu.fleet.drift import NO_GPU, drift_of, shared_by, unknown_facts
from whygpu.fleet.facts import chassis_of, facts_of, gpus_of
from whygpu.fleet.speeds import compared_speeds, speeds_of
from whygpu.model.fleet import (
    CauseGroup,
    Example,
    FleetReport,
    HardwareGroup,
    NodeCause,
    NodeLoss,
    NodeReport,
    Uncheckable,
    VerdictCount,
)
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.outside_text import excerpt, one_line
from whygpu.model.report import MachineVerdict, Report

ExampleOf = Callable[[str, str], Example | None]
"""From a node and a code to what was found there."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
"""A hostile snapshot can have any text there."""
_SEVERITIES = ("error", "warning", "info")
_LONGEST_REASON = 300
_MOST_REASONS = 40
"""Of one node. A hostile snapshot can have any number of them."""


def node_report(node: str, report: Report) -> NodeReport:
    """What a fleet keeps of the diagnosis of one node."""
    roots = (
        NodeCause(finding.code, finding.cause, finding.severity)
        for finding in report.root_causes
        if finding.severity != "info"
    )
    reasons = [reason for outcome in report.undetermined for reason in outcome.gaps]
    if report.verdict == "unknown" and not reasons:
        # Every check has passed, but nothing was there to be judged: no framework is installed.
        reasons = [report.headline]
    short = dict.fromkeys(excerpt(one_line(reason), _LONGEST_REASON) for reason in reasons)
    gpus = gpus_of(report.snapshot)
    return NodeReport(
        node=node,
        taken=one_line(excerpt(report.snapshot.taken, 40)),
        chassis=chassis_of(report.snapshot),
        gpus=Known(NO_GPU, gpus.source) if isinstance(gpus, Absent) else gpus,
        verdict=report.verdict,
        standing=report.standing,
        roots=tuple(dict.fromkeys(roots)),
        unjudged=tuple(short)[:_MOST_REASONS],
        facts=facts_of(report.snapshot),
        speeds=speeds_of(report.snapshot),
    )


def summarise(
    reports: Iterable[NodeReport], lost: Iterable[NodeLoss], example_of: ExampleOf
) -> FleetReport:
    """Verdicts counted, nodes by root cause, and what differs between comparable nodes."""
    judged = sorted(reports, key=lambda report: report.node)
    missing = tuple(sorted(lost))
    names: dict[MachineVerdict, list[str]] = defaultdict(list)
    for report in judged:
        names[report.verdict].append(report.node)
    verdicts: tuple[MachineVerdict, ...] = get_args(MachineVerdict)
    dates = sorted(report.taken for report in judged if _DATE.fullmatch(report.taken))
    speeds, slow = compared_speeds(judged)
    return FleetReport(
        nodes=len(judged) + len(missing),
        verdicts=tuple(
            VerdictCount(each, len(names[each]), tuple(names[each]))
            for each in verdicts
            if names[each]
        ),
        hardware=_hardware(judged),
        causes=_causes(judged, example_of),
        drift=drift_of(judged),
        lost=missing,
        uncheckable=_uncheckable(judged),
        oldest=dates[0] if dates else "",
        newest=dates[-1] if dates else "",
        speeds=speeds,
        slow=slow,
        unknown_facts=unknown_facts(judged),
    )


def _hardware(reports: Sequence[NodeReport]) -> tuple[HardwareGroup, ...]:
    counts = Counter(
        report.gpus.value if isinstance(report.gpus, Known) else "unknown GPUs"
        for report in reports
    )
    return tuple(HardwareGroup(gpus, count) for gpus, count in counts.most_common())


def _causes(reports: Sequence[NodeReport], example_of: ExampleOf) -> tuple[CauseGroup, ...]:
    nodes: dict[str, list[str]] = defaultdict(list)
    named: dict[str, NodeCause] = {}
    for report in reports:
        for root in report.roots:
            nodes[root.code].append(report.node)
            # The same cause can be an error on one node and a warning on another.
            before = named.get(root.code, root)
            named[root.code] = min(before, root, key=_severity)
    groups = (
        CauseGroup(
            code=code,
            cause=root.cause,
            severity=root.severity,
            nodes=tuple(dict.fromkeys(nodes[code])),
            example=example_of(nodes[code][0], code),
            shared=shared_by(nodes[code], reports),
        )
        for code, root in named.items()
    )
    return tuple(sorted(groups, key=_rank))


def _severity(root: NodeCause) -> int:
    return _SEVERITIES.index(root.severity)


def _rank(group: CauseGroup) -> tuple[int, int, str]:
    return _SEVERITIES.index(group.severity), -len(group.nodes), group.code


def _uncheckable(reports: Sequence[NodeReport]) -> tuple[Uncheckable, ...]:
    nodes: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        reasons = list(report.unjudged)
        if isinstance(report.gpus, Unknown):
            reasons.append(report.gpus.reason)
        for reason in dict.fromkeys(reasons):
            nodes[reason].append(report.node)
    found = (Uncheckable(reason, tuple(names)) for reason, names in nodes.items())
    return tuple(sorted(found, key=lambda item: (-len(item.nodes), item.reason)))
