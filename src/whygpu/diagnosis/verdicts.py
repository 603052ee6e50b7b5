"""The verdict on each framework, and on the machine as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from whygpu.model.derived import (
    MORE_TIME,
    and_list,
    display_name,
    gpu_of_maker,
    keras_backend,
    stopped_from_outside,
    usable_gpu,
)
from whygpu.model.finding import MACHINE, Finding
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.probe import Probe, ProbeName
from whygpu.model.report import FrameworkReport, FrameworkVerdict, MachineVerdict
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.graphics_devices import can_compute

PROBED = ("tensorflow", "keras", "jax", "torch")
"""Frameworks that are run. Others are judged by their presence and build."""


def judge_frameworks(machine: Snapshot, findings: Sequence[Finding]) -> tuple[FrameworkReport, ...]:
    """One verdict per installed framework. The result of a probe outranks the files."""
    frameworks = machine.target.frameworks
    if not isinstance(frameworks, Known):
        return ()
    reports: dict[str, FrameworkReport] = {}
    # Keras last: without its own probe it gets the verdict of its backend.
    for framework in sorted(frameworks.value, key=lambda item: item.name == "keras"):
        reports[framework.name] = _judge(machine, framework, findings, reports)
    return tuple(reports[framework.name] for framework in frameworks.value)


def _judge(
    machine: Snapshot,
    framework: Framework,
    findings: Sequence[Finding],
    others: Mapping[str, FrameworkReport],
) -> FrameworkReport:
    # A fault of the machine's GPU does not matter to a build that uses no GPU.
    kind = framework.build.kind
    without_gpu_code = isinstance(kind, Known) and kind.value == "cpu"
    subjects = (framework.name,) if without_gpu_code else (framework.name, MACHINE)
    blamed = [
        finding
        for finding in findings
        if finding.severity == "error" and finding.effect != "none" and finding.subject in subjects
    ]
    probe = _probe(machine, framework.name)
    if isinstance(probe, Known):
        verdict, summary = _from_probe(probe.value)
    else:
        verdict, summary = _from_files(machine, framework, blamed, probe)
    if framework.name == "keras":
        backend = keras_backend(machine, framework)
        if isinstance(backend, Known):
            summary = f"{display_name(backend.value)} backend: {summary}"
            below = others.get(backend.value)
            if below is not None and not isinstance(probe, Known) and verdict != "broken":
                verdict, summary = below.verdict, f"as its backend {display_name(backend.value)}"
                if verdict == "gpu":
                    verdict, summary = "unknown", f"not run itself; its backend is: {below.summary}"
            if below is not None and not blamed and verdict == below.verdict:
                return _report(framework, verdict, below.because, summary)
    codes = tuple(dict.fromkeys(finding.explained_by or finding.code for finding in blamed))
    return _report(framework, verdict, () if verdict == "gpu" else codes, summary)


def _report(
    framework: Framework, verdict: FrameworkVerdict, because: tuple[str, ...], summary: str
) -> FrameworkReport:
    return FrameworkReport(framework.name, framework.version, verdict, because, summary)


def _from_probe(probe: Probe) -> tuple[FrameworkVerdict, str]:
    if probe.ended == "not-started":
        return "unknown", f"the interpreter could not be started: {probe.how}"
    if probe.ended == "cut-short":
        return "unknown", f"not finished after {probe.how} (at: {probe.stage}); {MORE_TIME}"
    if stopped_from_outside(probe):
        return "unknown", f"stopped from outside at {probe.stage}: {probe.how}"
    if probe.ended == "over-limit":
        return "unknown", f"stopped at {probe.stage}: it used {probe.how}"
    if probe.ended == "timed-out":
        return "broken", f"does not finish within {probe.how} (at: {probe.stage})"
    if probe.ended != "finished":
        return "broken", f"fails at {probe.stage}: {probe.how}"
    return _from_operations(probe)


def _from_operations(probe: Probe) -> tuple[FrameworkVerdict, str]:
    """The verdict of a finished probe: only correct results prove anything."""
    unchecked = ""
    for operation in probe.operations:
        name = f"{operation.operation} on {operation.requested}"
        if not isinstance(operation.ran_on, Known):
            return "broken", f"{name} fails: {_why_not(operation.ran_on)}"
        if not isinstance(operation.correct, Known):
            unchecked = f"the result of {name} was not checked: {_why_not(operation.correct)}"
        elif not operation.correct.value:
            return "broken", f"{name} fails: its result is wrong"
    if unchecked:
        return "unknown", unchecked
    kinds = {operation.kind for operation in probe.operations}
    if "gpu" in kinds:
        devices = probe.devices.value if isinstance(probe.devices, Known) else ()
        names = [device.description or device.name for device in devices if device.kind == "gpu"]
        return "gpu", f"computes on {', '.join(dict.fromkeys(names)) or 'the GPU'}"
    if "cpu" in kinds:
        return "cpu", "computes on the CPU"
    if kinds:
        return "unknown", "computes on a device that is neither a CPU nor a GPU"
    return "unknown", "its probe finished without computing anything"


def _why_not(observed: Absent | Unknown) -> str:
    return observed.reason if isinstance(observed, Unknown) else observed.source


def _from_files(
    machine: Snapshot,
    framework: Framework,
    blamed: Sequence[Finding],
    probe: Absent | Unknown,
) -> tuple[FrameworkVerdict, str]:
    certain = [finding for finding in blamed if finding.confidence == "certain"]
    if any(finding.effect == "broken" for finding in certain):
        return "broken", "cannot be imported"
    if certain:
        return "cpu", "runs on the CPU"
    if isinstance(framework.build.kind, Known) and framework.build.kind.value == "cpu":
        return "cpu", "a CPU build"
    if isinstance(usable_gpu(machine), Absent):
        return "cpu", "no GPU to run on"
    reason = probe.reason if isinstance(probe, Unknown) else probe.source
    found = "something is likely to prevent it" if blamed else "nothing found against it"
    return "unknown", f"{found}, but {reason}"


def judge_machine(
    machine: Snapshot,
    findings: Sequence[Finding],
    frameworks: Sequence[FrameworkReport],
    gaps: Sequence[str] = (),
) -> tuple[MachineVerdict, str]:
    """The worst verdict among the frameworks that matter, and its sentence.

    `gaps` are the reasons why causes could not be judged. A sentence that says that nothing is
    wrong must name them.
    """
    counted = [item for item in frameworks if item.name in PROBED] or list(frameworks)
    gpu = usable_gpu(machine)
    if not counted:
        return _without_frameworks(machine, findings, gaps)
    roots = [f for f in findings if f.explained_by is None and f.severity == "error"]
    broken = [item for item in counted if item.verdict == "broken"]
    if broken:
        sentence = f"{_names(broken)} {_do(broken, 'does', 'do')} not work"
        return "broken", sentence + _blamed(broken, roots)
    on_cpu = [item for item in counted if item.verdict == "cpu"]
    on_gpu = [item for item in counted if item.verdict == "gpu"]
    unknown = [item for item in counted if item.verdict == "unknown"]
    # A GPU that a probe has computed on exists, whatever the files say.
    no_gpu = isinstance(gpu, Absent) and not on_gpu and not any(map(_hides_gpus, roots))
    beside = f" ({_names(on_gpu)} {_do(on_gpu, 'does', 'do')})" if on_gpu else ""
    if no_gpu:
        return _without_gpu(machine, frameworks, counted, findings, gaps)
    if on_cpu and isinstance(gpu, Unknown) and not any(item.because for item in on_cpu):
        sentence = f"{_names(on_cpu)} {_do(on_cpu, 'runs', 'run')} on the CPU"
        return "unknown", f"cannot tell whether there is a GPU to use ({gpu.reason}); {sentence}"
    if on_cpu:
        sentence = f"{_names(on_cpu)} {_do(on_cpu, 'does', 'do')} not use the GPU"
        return "cpu", sentence + beside + _blamed(on_cpu, roots)
    if unknown:
        sentence = f"cannot tell whether {_names(unknown)} {_do(unknown, 'uses', 'use')} the GPU"
        return "unknown", f"{sentence}{beside}: {why_unknown(unknown)}"
    rest = _rest(findings, gaps)
    sentence = f"{_names(on_gpu)} {_do(on_gpu, 'uses', 'use')} the GPU"
    return "gpu", f"{sentence}; {rest}" if rest else sentence


def why_unknown(unknown: Sequence[FrameworkReport]) -> str:
    """One reason for all of them. Keras only refers to its backend, which says why itself."""
    return min(unknown, key=lambda item: item.name == "keras").summary


def _without_gpu(
    machine: Snapshot,
    frameworks: Sequence[FrameworkReport],
    counted: Sequence[FrameworkReport],
    findings: Sequence[Finding],
    gaps: Sequence[str],
) -> tuple[MachineVerdict, str]:
    """Without a GPU, the verdict is fine if every framework was seen to work on the CPU."""
    none = _no_gpu(machine)
    unknown = [item for item in counted if item.verdict == "unknown"]
    if unknown:
        work = f"cannot tell whether {_names(unknown)} {_do(unknown, 'works', 'work')}"
        return "unknown", f"{none}; {work}: {why_unknown(unknown)}"
    untried = [item for item in counted if not isinstance(_probe(machine, item.name), Known)]
    if untried:
        work = f"whether {_names(untried)} {_do(untried, 'works', 'work')} was not tried"
        why = machine.probes_left_out or _no_probe(untried[0].name)
        return "unknown", f"{none}; {work}: {why}"
    all_of_them = "everything runs" if len(counted) == len(frameworks) else _run(counted)
    rest = _rest(findings, gaps) or "nothing to fix"
    return "no-gpu", f"{none}; {all_of_them} on the CPU; {rest}"


def _no_gpu(machine: Snapshot) -> str:
    """A GPU of another maker that no framework here is built for is there all the same."""
    graphics = machine.graphics.value if isinstance(machine.graphics, Known) else ()
    other = next(filter(can_compute, graphics), None)
    if other is None:
        # Nothing in WSL shows which GPUs Windows has.
        place = "this machine" if isinstance(machine.system.wsl, Absent) else "WSL"
        return f"{place} has no GPU{_driver_without_card(machine)}"
    return f"this machine has no NVIDIA GPU, but {gpu_of_maker(other)}, which no build here is for"


def _driver_without_card(machine: Snapshot) -> str:
    """A card without power is not on the bus. On a login node, only the driver is installed."""
    library = machine.driver.cuda_library
    bare = isinstance(machine.system.container, Absent) and isinstance(machine.system.wsl, Absent)
    if not bare or not isinstance(library, Known) or library.value.kind != "driver":
        return ""
    return (
        f" on its bus, although NVIDIA's driver is installed ({library.value.path}; a laptop may "
        "have switched its card off: prime-select query)"
    )


def _run(items: Sequence[FrameworkReport]) -> str:
    return f"{_names(items)} {_do(items, 'runs', 'run')}"


def _probe(machine: Snapshot, framework: str) -> Observed[Probe]:
    if framework not in PROBED:
        return Absent(_no_probe(framework))
    return machine.probe(cast(ProbeName, framework))


def _no_probe(framework: str) -> str:
    return f"whygpu has no probe for {display_name(framework)}"


def _without_frameworks(
    machine: Snapshot, findings: Sequence[Finding], gaps: Sequence[str]
) -> tuple[MachineVerdict, str]:
    frameworks = machine.target.frameworks
    if not isinstance(frameworks, Known):
        reason = frameworks.reason if isinstance(frameworks, Unknown) else frameworks.source
        return "unknown", f"cannot tell: the examined environment could not be read: {reason}"
    interpreter = machine.target.interpreter
    if not isinstance(interpreter, Known):
        return "unknown", f"cannot tell: {_why_not(interpreter)}"
    none = "no deep-learning framework is installed in the examined environment"
    gpu = usable_gpu(machine)
    if isinstance(gpu, Absent):
        rest = _rest(findings, gaps) or "nothing to fix"
        return "no-gpu", f"{_no_gpu(machine)}, and {none}; {rest}"
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        return "cpu", f"{none}, and the GPU could not be used ({errors[0].code} {errors[0].cause})"
    return "unknown", none


def _blamed(items: Sequence[FrameworkReport], roots: Sequence[Finding]) -> str:
    """The first root cause that concerns one of these frameworks."""
    codes = {code for item in items for code in item.because}
    root = next((root for root in roots if root.code in codes), None)
    return f" ({root.code} {root.cause})" if root is not None else ""


def _hides_gpus(finding: Finding) -> bool:
    """Whether the finding can be the reason why no GPU is seen: a fault of the machine can, a
    fault of a framework cannot.

    The exception is a build for GPUs of another maker, which shows that there is a GPU.
    """
    concerns_all = finding.subject == MACHINE or finding.cause == "non-nvidia-backend"
    return concerns_all and finding.effect != "none"


def _rest(findings: Sequence[Finding], gaps: Sequence[str]) -> str:
    """What a sentence that says that nothing is wrong must add; empty if nothing."""
    if any(finding.severity != "info" for finding in findings):
        return "but see below"
    if not gaps:
        return ""
    more = f" (and {len(gaps) - 1} more, below)" if len(gaps) > 1 else ""
    return f"but not everything could be checked: {gaps[0]}{more}"


def _names(items: Sequence[FrameworkReport]) -> str:
    return and_list([display_name(item.name) for item in items])


def _do(items: Sequence[FrameworkReport], one: str, several: str) -> str:
    return one if len(items) == 1 else several
