"""Remedies that install a framework get their release from the planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from whygpu.model.finding import Finding
    from whygpu.model.log import Log
    from whygpu.model.snapshot import Snapshot
    from whygpu.planner.remedies import Place


def with_releases(findings: tuple[Finding, ...], place: Callable[[], Place]) -> tuple[Finding, ...]:
    """The findings with releases chosen. The planner is imported only if a remedy needs one."""
    if not any(remedy.wishes for finding in findings for remedy in finding.remedies):
        return findings
    from whygpu.planner.remedies import fulfilled

    return fulfilled(findings, place)


def place_of_machine(machine: Snapshot) -> Place:
    from whygpu.planner.remedies import place_of

    return place_of(machine)


def place_of_log(log: Log) -> Place:
    from whygpu.causes.evidence.log_machines import gpus_in, platform_in
    from whygpu.planner import remedies

    return remedies.place_of_log(log, platform_in(log), gpus_in(log))
