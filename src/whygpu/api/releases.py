"""Remedies that install a framework get their release from the planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from whygpu.model.finding import Finding
    from whygpu.model.log import Log
    from whygpu.model.snapshot import Snapshot
    from whygpu.planner.remedies import Destination


def with_releases(
    findings: tuple[Finding, ...], destination: Callable[[], Destination]
) -> tuple[Finding, ...]:
    """The findings with releases chosen. The planner is imported only if a remedy needs one."""
    if not any(remedy.wishes for finding in findings for remedy in finding.remedies):
        return findings
    from whygpu.planner.remedies import fulfilled

    return fulfilled(findings, destination)


def destination_of_machine(machine: Snapshot) -> Destination:
    from whygpu.planner.remedies import destination_of

    return destination_of(machine)


def destination_of_log(log: Log) -> Destination:
    from whygpu.causes.evidence.log_machines import gpus_in, platform_in
    from whygpu.planner import remedies

    return remedies.destination_of_log(log, platform_in(log), gpus_in(log))
