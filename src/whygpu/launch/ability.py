"""Whether a GPU can be used here at all, judged by files, the driver, and a start of the driver."""

from __future__ import annotations

from collections.abc import Collection

from whygpu.diagnosis.verdicts import PROBED
from whygpu.errors import PolicyError
from whygpu.launch.devices import VISIBLE, gpus_of
from whygpu.model.derived import and_list, display_name, installer_of, keras_backend
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.lack import Lack, Obstacle
from whygpu.model.observed import Absent, Known
from whygpu.model.report import FrameworkReport, Report
from whygpu.model.snapshot import Snapshot


def machine_lacks(report: Report) -> Lack | None:
    """Why no program can use a GPU on this machine; None if one may be able to."""
    machine = report.snapshot
    given = machine.environment.visible_gpus
    if isinstance(given, Known) and given.value.visible == Known((), given.source):
        return Lack(f"{VISIBLE}={given.value.text!r} hides every GPU")
    for finding in _errors(report):
        if finding.subject == MACHINE and finding.effect != "none":
            summary = f"{finding.message} ({finding.code} {finding.cause})"
            return Lack(summary, (Obstacle("", _remedy(finding, machine)),), installer_of(machine))
    try:
        gpus_of(machine)
    except PolicyError as error:
        return Lack(str(error))
    state = machine.driver.state
    if isinstance(state, Known) and state.value != "working":
        return Lack(f"the NVIDIA driver does not work: {machine.driver.detail or state.value}")
    if isinstance(machine.driver.cuda_library, Absent):
        return Lack(f"there is no CUDA driver library: {machine.driver.cuda_library.source}")
    return None


def frameworks_lack(report: Report, named: Collection[str]) -> Lack | None:
    """Why none of the program's frameworks can use the GPU; None if one may be able to.

    These are the frameworks that its file imports by name, or else all that are installed.
    """
    judged = [item for item in report.frameworks if item.name in PROBED]
    concerned = [item for item in judged if item.name in named] if named else judged
    if not concerned or any(item.verdict not in ("cpu", "broken") for item in concerned):
        return None
    names = and_list([f"{display_name(item.name)} {item.version}" for item in concerned])
    obstacles = tuple(
        Obstacle(f"{finding.code} {finding.message}", _remedy(finding, report.snapshot))
        for finding in _blamed(report, concerned)
    )
    return Lack(f"{names} cannot use it here", obstacles, installer_of(report.snapshot))


def _blamed(report: Report, items: Collection[FrameworkReport]) -> list[Finding]:
    """The errors that decide these verdicts, and not the same errors of other frameworks."""
    blamed = {
        (code, subject)
        for item in items
        for code in item.because
        for subject in (MACHINE, item.name, _backend(report.snapshot, item.name))
    }
    return [finding for finding in _errors(report) if (finding.code, finding.subject) in blamed]


def _backend(machine: Snapshot, name: str) -> str:
    """The framework whose faults Keras has as well; for others, and if it is not known, empty."""
    framework = machine.framework("keras")
    if name != "keras" or not isinstance(framework, Known):
        return ""
    backend = keras_backend(machine, framework.value)
    return backend.value if isinstance(backend, Known) else ""


def _errors(report: Report) -> list[Finding]:
    return [finding for finding in report.root_causes if finding.severity == "error"]


def _remedy(finding: Finding, machine: Snapshot) -> Remedy | None:
    if not finding.remedies:
        return None
    from whygpu.planner.remedies import destination_of, fulfilled

    first = finding._replace(remedies=finding.remedies[:1])
    return fulfilled((first,), lambda: destination_of(machine))[0].remedies[0]
