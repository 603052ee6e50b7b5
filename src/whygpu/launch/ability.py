"""Whether the GPU can be used here at all, as far as files, the driver and its start tell."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from whygpu.diagnosis.verdicts import PROBED
from whygpu.errors import PolicyError
from whygpu.launch.devices import VISIBLE, gpus_of
from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import and_list, display_name, installer_of
from whygpu.model.finding import MACHINE, Finding
from whygpu.model.observed import Absent, Known
from whygpu.model.report import FrameworkReport, Report
from whygpu.model.snapshot import Snapshot


class Inability(NamedTuple):
    """Why the GPU cannot be used."""

    summary: str
    """In one line."""
    text: str
    """In full, with what to do about it."""


def machine_lacks(report: Report) -> Inability | None:
    """Why no program can use a GPU on this machine; None if one may."""
    machine = report.snapshot
    given = machine.environment.visible_gpus
    if isinstance(given, Known) and given.value.visible == Known((), given.source):
        return _in_one_line(f"{VISIBLE}={given.value.text!r} hides every GPU")
    for finding in _errors(report):
        if finding.subject == MACHINE and finding.effect != "none":
            summary = f"{finding.message} ({finding.code} {finding.cause})"
            return Inability(summary, f"{summary}{_remedy(finding, machine)}")
    try:
        gpus_of(machine)
    except PolicyError as error:
        return _in_one_line(str(error))
    state = machine.driver.state
    if isinstance(state, Known) and state.value != "working":
        detail = machine.driver.detail or state.value
        return _in_one_line(f"the NVIDIA driver does not work: {detail}")
    if isinstance(machine.driver.cuda_library, Absent):
        source = machine.driver.cuda_library.source
        return _in_one_line(f"there is no CUDA driver library: {source}")
    return None


def _in_one_line(text: str) -> Inability:
    return Inability(text, text)


def frameworks_lack(report: Report, named: Collection[str]) -> Inability | None:
    """Why none of the program's frameworks can use the GPU; None if one may.

    Those are the frameworks that its file names, else all that are installed.
    """
    judged = [item for item in report.frameworks if item.name in PROBED]
    concerned = [item for item in judged if item.name in named] or judged
    if not concerned or any(item.verdict not in ("cpu", "broken") for item in concerned):
        return None
    names = and_list([f"{display_name(item.name)} {item.version}" for item in concerned])
    blamed = _blamed(report, concerned)
    causes = [f"{finding.code} {finding.message}" for finding in blamed]
    details = [
        f"\n  {cause}{_remedy(finding, report.snapshot)}"
        for cause, finding in zip(causes, blamed, strict=True)
    ]
    return Inability(
        summary=": ".join([f"{names} cannot use it here", *causes[:1]]),
        text=f"{names} cannot use it here{''.join(details)}",
    )


def _blamed(report: Report, items: Collection[FrameworkReport]) -> list[Finding]:
    codes = {code for item in items for code in item.because}
    return [finding for finding in _errors(report) if finding.code in codes]


def _errors(report: Report) -> list[Finding]:
    return [finding for finding in report.root_causes if finding.severity == "error"]


def _remedy(finding: Finding, machine: Snapshot) -> str:
    if not finding.remedies:
        return ""
    from whygpu.planner.remedies import fulfilled, place_of

    first = finding._replace(remedies=finding.remedies[:1])
    (remedy,) = fulfilled((first,), lambda: place_of(machine))[0].remedies
    installer = installer_of(machine)
    command = shell_text(remedy.action, installer)
    return f"\n    {remedy_text(remedy, installer)}" + (f"\n      {command}" if command else "")
