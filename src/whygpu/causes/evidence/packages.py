"""Installed packages and their requirements, for the causes that judge them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.probe_ends import failure_message, own_probes, quoted
from whygpu.model.derived import and_list
from whygpu.model.finding import Evidence, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.probe import Probe
from whygpu.model.remedy import DropPath, Install
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, FrameworkName, Package, RequirementConflict, active
from whygpu.tables.distributions import provider

_NAME = late(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def required_name(requirement: str) -> str:
    """The package that a requirement is about: required_name("protobuf>=5.28") is "protobuf"."""
    match = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match.group()).lower() if match else ""


def tidy(requirement: str) -> str:
    """A requirement in pip's current form: "numpy (<2,>=1.23)" is an older spelling."""
    return re.sub(r"[()\s]", "", requirement.partition(";")[0])


def framework_name_of(package: str) -> FrameworkName | None:
    """The framework that a package is, or belongs to."""
    row = provider(package)
    if row is not None:
        return row.framework
    return "jax" if package == "jaxlib" or package.startswith("jax-") else None


def package_named(machine: Snapshot, name: str) -> Package | None:
    """The installed package that Python imports."""
    packages = machine.target.packages
    if not isinstance(packages, Known):
        return None
    return next((package for package in active(packages.value) if package.name == name), None)


def off_pythonpath(machine: Snapshot, location: str) -> DropPath | None:
    """Remove a folder from PYTHONPATH; None if it is not there.

    pip installs into the environment, so it cannot replace a package in such a folder.
    """
    variable = machine.environment.get("PYTHONPATH")
    folders = variable.value.split(":") if isinstance(variable, Known) else []
    rest = tuple(item for item in folders if posixpath.normpath(item) != location)
    return None if len(rest) == len(folders) else DropPath("PYTHONPATH", location, rest)


def other_version(machine: Snapshot, requirement: str, text: str) -> Remedy:
    """Install another version of a package, or remove a copy of it from PYTHONPATH."""
    package = package_named(machine, required_name(requirement))
    drop = off_pythonpath(machine, package.location) if package is not None else None
    if package is None or drop is None:
        return Remedy(text, Install((requirement,)))
    return Remedy(
        f"Remove {package.location} from PYTHONPATH: Python imports {package.name} "
        f"{package.version} from there, whatever is installed in the environment.",
        drop,
    )


def requirement_of(machine: Snapshot, framework: Framework, name: str) -> str | None:
    """The requirement on another package in a framework's own metadata."""
    package = package_named(machine, framework.distribution)
    lines = package.requires if package is not None else ()
    found = (tidy(line) for line in lines)
    return next((line for line in found if required_name(line) == name), None)


def requirement_named_like(machine: Snapshot, framework: Framework, module: str) -> str | None:
    """The one requirement of a framework whose name has the module's name as a part.

    A package often has another name than its module: absl-py contains absl.
    """
    package = package_named(machine, framework.distribution)
    lines = [tidy(line) for line in (package.requires if package is not None else ())]
    wanted = module.lower().replace("_", "-")
    found = [
        line
        for line in lines
        if wanted in (name := required_name(line)).split("-") or name == f"py{wanted}"
    ]
    return found[0] if len(found) == 1 else None


def unmet(
    machine: Snapshot, framework: FrameworkName, name: str
) -> Observed[RequirementConflict | None]:
    """The conflict between a framework's packages and one other package, if there is one."""
    conflicts = machine.target.conflicts
    if not isinstance(conflicts, Known):
        return conflicts
    found = (
        conflict
        for conflict in conflicts.value
        if framework_name_of(conflict.package) == framework
        and required_name(conflict.requirement) == name
    )
    return Known(next(found, None), conflicts.source)


def conflict_on(machine: Snapshot, framework: Framework, name: str) -> RequirementConflict | None:
    """The requirement of a framework that a package does not meet, if that is known."""
    found = unmet(machine, framework.name, name)
    return found.value if isinstance(found, Known) else None


def conflict_evidence(machine: Snapshot, conflict: RequirementConflict) -> Evidence:
    text = f"{conflict.package} requires {tidy(conflict.requirement)}"
    version = f"; {conflict.found.value} is installed" if isinstance(conflict.found, Known) else ""
    return seen(machine.target.conflicts, text + version)


class ImportFault(NamedTuple):
    """A framework that cannot be imported because of another package."""

    framework: Framework
    message: re.Match[str] | None
    """What the probe printed or raised; None if no probe ran and only metadata are known."""
    evidence: tuple[Evidence, ...]
    conflict: RequirementConflict | None
    probe: Probe | None = None
    """The probe with the message."""


def import_faults(
    machine: Snapshot, package: str, messages: re.Pattern[str]
) -> Iterator[ImportFault | Gap]:
    """Frameworks that `package` breaks: proven by a message, or suspected from metadata alone.

    If a probe imported the framework, that decides, whatever the metadata show.
    """
    unjudged: list[str] = []
    for framework, probe in own_probes(machine):
        found = unmet(machine, framework.name, package)
        conflict = conflict_on(machine, framework, package)
        evidence = () if conflict is None else (conflict_evidence(machine, conflict),)
        if isinstance(probe, Known):
            match = failure_message(probe.value, messages)
            if match is not None:
                line = quoted(probe.value, match.string)
                yield ImportFault(framework, match, (line, *evidence), conflict, probe.value)
        elif isinstance(found, Unknown):
            unjudged.append(titled(framework))
        elif conflict is not None and isinstance(conflict.found, Known):
            yield ImportFault(framework, None, evidence, conflict)
    if unjudged and isinstance(machine.target.conflicts, Unknown):
        reason = machine.target.conflicts.reason
        yield Gap(f"whether {package} matches {and_list(unjudged)}: {reason}")


def claims(
    machine: Snapshot, conflict: RequirementConflict, package: str, messages: re.Pattern[str]
) -> bool:
    """Whether import_faults(machine, package, messages) reports this conflict."""
    return any(
        isinstance(fault, ImportFault) and fault.conflict == conflict
        for fault in import_faults(machine, package, messages)
    )
