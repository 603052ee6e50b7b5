"""Fills in the wishes of remedies: which release of a framework to install on this machine.

A cause says that a GPU build is needed (InstallFramework). This module replaces that wish with an
Install of an exact release. If there is none, the remedy has no command and its text says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, get_args

from whygpu.errors import UsageError
from whygpu.model.derived import and_list, display_name
from whygpu.model.finding import Finding, Remedy
from whygpu.model.install_plan import Candidate, Constraint, PlanAnswer, TableEdition, Wish
from whygpu.model.log import Log
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.remedy import Install, InstallFramework, Step, Steps, steps_of
from whygpu.model.snapshot import Snapshot
from whygpu.planner.candidates import Table
from whygpu.planner.changes import undoubted
from whygpu.planner.machine import from_snapshot
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import FRAMEWORKS
from whygpu.tables.releases import shipped, versions_of
from whygpu.tables.torch_indexes import INDEX_ROOT, indexes_for, tag_of
from whygpu.tables.versions import release_numbers

_RELEASE = re.compile(r"\d{1,4}(?:\.\d{1,6}){0,3}")
_CUDA_ELSEWHERE = ("onnxruntime",)
"""Frameworks whose releases never include the CUDA libraries."""
_OWN_BUILD = ("torch",)
"""Frameworks whose plain package is the GPU build, without an extra."""


class Destination(NamedTuple):
    """The machine and environment for an installation."""

    machine: MachineSpec
    beside: tuple[Wish, ...] = ()
    """Installed GPU builds of other frameworks, which must continue to work."""


def destination_of(machine: Snapshot) -> Destination:
    frameworks = machine.target.frameworks
    installed = frameworks.value if isinstance(frameworks, Known) else ()
    beside = [
        Wish(framework.name, f"=={release}")
        for framework in installed
        if framework.name in FRAMEWORKS
        and isinstance(framework.build.kind, Known)
        and framework.build.kind.value == "cuda"
        and (release := _release(framework.version))
    ]
    return Destination(from_snapshot(machine), tuple(beside))


def destination_of_log(
    log: Log, platform: str = "", gpus: Sequence[PlannedGpu] = ()
) -> Destination:
    """What a log shows about the machine that wrote it."""
    unknown = Unknown("the log does not say")
    python, driver = (_version_in(log, name) for name in ("python", "driver"))
    return Destination(
        MachineSpec(
            python,
            Known(platform, "the log") if platform else unknown,
            unknown,
            driver,
            Known(tuple(gpus), "the log") if gpus else unknown,
        )
    )


def _version_in(log: Log, name: str) -> Observed[str]:
    version = _release(log.version_of(name) or "")
    return Known(version, "the log") if version else Unknown("the log does not say")


def fulfilled(
    findings: Sequence[Finding], destination: Callable[[], Destination]
) -> tuple[Finding, ...]:
    """The findings with each wish replaced; `destination` is called only if there is a wish."""
    if not any(remedy.wishes for finding in findings for remedy in finding.remedies):
        return tuple(findings)
    known = destination()
    return tuple(
        finding._replace(
            remedies=tuple(
                _fulfil(remedy, known) if remedy.wishes else remedy for remedy in finding.remedies
            )
        )
        for finding in findings
    )


def _fulfil(remedy: Remedy, destination: Destination) -> Remedy:
    text, steps = remedy.text, list[Step]()
    no_gpu = isinstance(destination.machine.gpus, Absent) and not _is_mac(destination.machine)
    for step in steps_of(remedy.action):
        if not isinstance(step, InstallFramework):
            steps.append(step)
            continue
        found = _release_for(step, destination)
        if isinstance(found, str):
            return Remedy(f"{text} whygpu knows no command for it: {found}.")
        candidate, note, pins = found
        text += note
        tag = _index_of(candidate, _with_evidence(destination.machine, step))
        index = f"{INDEX_ROOT}{tag}" if tag else ""
        requirements = _without_extras(candidate) if no_gpu else candidate.requirements
        if not index and not no_gpu and "no-deps" not in step.options:
            # An index of PyTorch has little else.
            requirements += pins
        steps.append(Install(requirements, index, step.removes, step.options))
    return Remedy(text, steps[0] if len(steps) == 1 else Steps(tuple(steps)))


def _index_of(candidate: Candidate, machine: MachineSpec) -> str:
    """The index of PyTorch to install from; empty for the default index.

    On Windows, the default index has CPU builds of PyTorch. If nothing shows the system, the
    command names the index of the build that is the default on Linux, which has builds for both.
    """
    if candidate.torch_index or candidate.framework != "torch":
        return candidate.torch_index
    if not isinstance(machine.platform, Unknown) or candidate.uses != "cuda":
        return ""
    tag = tag_of(candidate.cuda)
    minor = release_numbers(candidate.version)[:2]
    return tag if tag in indexes_for("win_amd64", (minor[0], minor[1])) else ""


def _is_mac(machine: MachineSpec) -> bool:
    return machine.platform_name.startswith("macosx")


def _without_extras(candidate: Candidate) -> tuple[str, ...]:
    """The same release without gigabytes of CUDA libraries, which need a GPU."""
    return (f"{candidate.package}=={candidate.version}",)


Found = tuple[Candidate, str, tuple[str, ...]]
"""A release, notes on it, and what the command must pin beside it."""


def _release_for(wish: InstallFramework, destination: Destination) -> Found | str:
    """The release, or why there is none."""
    others = tuple(other for other in destination.beside if other.framework != wish.framework)
    machine = _with_evidence(destination.machine, wish)
    refused = ""
    for company in dict.fromkeys((others, ())):
        for versions in _ranges(wish):
            answer = _asked(machine, (Wish(wish.framework, versions), *company))
            if isinstance(answer, str):
                refused = answer
                continue
            found = _chosen(answer)
            if isinstance(found, Candidate):
                return found, _notes(answer, () if company == others else others), _pins(answer)
            refused = found
    return refused


def _with_evidence(machine: MachineSpec, wish: InstallFramework) -> MachineSpec:
    """The machine, with what the finding knows about it."""
    if wish.python:
        machine = machine._replace(python=Known(wish.python, "the finding"))
    if wish.platform:
        machine = machine._replace(platform=Known(wish.platform, "the finding"))
    return machine


def _ranges(wish: InstallFramework) -> Iterator[str]:
    """Smallest change first: the same release, its patch releases, its major release."""
    numbers = release_numbers(_release(wish.installed)) if wish.installed else ()
    if not numbers:
        yield ""
        return
    exact = ".".join(map(str, numbers))
    later = f",>{exact}" if wish.newer else ""
    if not later:
        yield f"=={exact}"
    if len(numbers) > 1:
        yield f"=={numbers[0]}.{numbers[1]}.*{later}"
    yield f"<{numbers[0] + 1}{later}"


def _asked(machine: MachineSpec, wishes: tuple[Wish, ...]) -> PlanAnswer | str:
    try:
        edition = TableEdition(shipped().date, "shipped")
        return make_plan(machine, wishes, Table(versions_of, edition))
    except UsageError as error:
        # A release that the table does not have.
        return str(error)


def _chosen(answer: PlanAnswer) -> Candidate | str:
    """The first choice of the plan, or why there is no command for it."""
    if answer.plan is None:
        return answer.gave_up or answer.conflict or _nearest_refusal(answer)
    candidate = _modest(answer, answer.plan.chosen[0])
    name = f"{candidate.package} {candidate.version}"
    likely_failure = answer.plan.likely_failure
    instead = _instead(answer) if likely_failure else ""
    if likely_failure and (candidate.unsearched or instead):
        return f"{name} {likely_failure}{instead}"
    if candidate.unsearched:
        folders = ", ".join(candidate.unsearched)
        return f"{name} does not search the folder of its own {folders}, and none newer fits"
    brings_cuda = candidate.extra or candidate.framework in (*_OWN_BUILD, *_CUDA_ELSEWHERE)
    if candidate.uses == "cuda" and not brings_cuda:
        cudnn = f" and cuDNN {candidate.cudnn}" if candidate.cudnn else ""
        return f"{name}, the newest that fits, needs CUDA {candidate.cuda}{cudnn} on the machine"
    return candidate


def _instead(answer: PlanAnswer) -> str:
    """The smallest change that leads to a release without such reports; empty if none is known."""
    table = Table(versions_of, TableEdition(shipped().date, "shipped"))
    change = next(iter(undoubted(answer.machine, answer.wishes, table)), None)
    if change is None:
        return ""
    names = and_list([f"{item.package} {item.version}" for item in change.chosen])
    return f". No such reports are known of {names}, which is possible with {change.what}"


def _pins(answer: PlanAnswer) -> tuple[str, ...]:
    """What the requirements of the release do not say, such as the last cuDNN for an old GPU."""
    plan = answer.plan
    return tuple(requirement for requirement, _ in plan.solution.pins) if plan else ()


def _modest(answer: PlanAnswer, chosen: Candidate) -> Candidate:
    """If the driver is unknown, the build of that release for the oldest CUDA."""
    if isinstance(answer.machine.driver, Known):
        return chosen
    builds = [
        verdict.candidate
        for verdict in answer.candidates
        if verdict.fits
        and (verdict.candidate.package, verdict.candidate.version)
        == (chosen.package, chosen.version)
        and bool(verdict.candidate.torch_index) == bool(chosen.torch_index)
    ]
    return min(builds, key=lambda build: release_numbers(build.cuda), default=chosen)


def _nearest_refusal(answer: PlanAnswer) -> str:
    """Why the release that satisfies most constraints does not fit; the newest of these."""
    order = get_args(Constraint)
    nearest = max(answer.candidates, key=lambda v: order.index(v.breaks) if v.breaks else -1)
    return f"{nearest.candidate.package} {nearest.candidate.version} {nearest.reason}"


def _notes(answer: PlanAnswer, left_out: tuple[Wish, ...]) -> str:
    notes = "".join(f" {text}." for text in _doubts(answer))
    if left_out:
        names = and_list([f"{display_name(o.framework)} {o.specifier[2:]}" for o in left_out])
        notes += f" It is not compatible with {names}: use a separate environment."
    machine = answer.machine
    facts = (("Python", machine.python), ("driver", machine.driver), ("GPU", machine.gpus))
    unknown = [name for name, fact in facts if isinstance(fact, Unknown)]
    if unknown:
        framework = answer.wishes[0].framework
        notes += (
            f" Not known here: its {and_list(unknown)}. Run `whygpu plan {framework}` on that "
            "machine to find the release that fits."
        )
    return notes


def _doubts(answer: PlanAnswer) -> Iterator[str]:
    """Why the release, or its build, may not be what is needed."""
    verdict = answer.plan.verdicts[0] if answer.plan else None
    if verdict is not None:
        name = f"{verdict.candidate.package} {verdict.candidate.version}"
        for doubt in (verdict.candidate.doubt, verdict.likely_failure):
            if doubt:
                yield f"{name} {doubt}"


def _release(version: str) -> str:
    """The public part of a version: 2.8.0 of 2.8.0+cu126."""
    match = _RELEASE.match(version)
    return match.group() if match else ""
