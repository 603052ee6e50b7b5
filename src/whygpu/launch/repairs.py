"""Repairs for one process, by cause.

A repair is a proposal: the machine is examined again with the repair in place. It stays only if
its fault is then gone and there is no new one.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Iterator, Mapping

from whygpu.causes.evidence.illegal_instructions import trapping_in_use
from whygpu.causes.evidence.keras_backend import BACKENDS, choice_of
from whygpu.causes.evidence.library_faults import (
    Failure,
    LibraryFault,
    copies_or_none,
    failures,
    is_cudnn,
    libraries_of,
    usable_copies,
)
from whygpu.causes.evidence.library_search import found_through
from whygpu.launch.environment import LIBRARY_PATH, changed, folders, same
from whygpu.model.derived import and_list, display_name, keras_backend
from whygpu.model.finding import MACHINE, Finding, Gap
from whygpu.model.observed import Known
from whygpu.model.policy import Action, Repair
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.onednn_isa import VARIABLES, limit_without

XLA_DATA = "--xla_gpu_cuda_data_dir"

Proposals = Iterator[Repair]
Repairer = Callable[[Snapshot, Finding, Mapping[str, str]], Proposals]
Examine = Callable[[Mapping[str, str]], Report]
"""Examine the machine as a program with this environment would see it."""


def repairs_for(
    report: Report,
    environ: Mapping[str, str],
    examine: Examine,
    causes: Collection[str] | None = None,
) -> tuple[Repair, ...]:
    """The repairs that work, in the order of the findings; `causes` limits what is repaired."""
    kept: list[Repair] = []
    for finding in report.findings:
        repairer = REPAIRERS.get(finding.cause)
        unwanted = causes is not None and finding.cause not in causes
        if repairer is None or unwanted or not _is_there(finding, report):
            continue
        now = changed(environ, (action for repair in kept for action in repair.actions))
        for repair in repairer(report.snapshot, finding, now):
            mended = examine(changed(now, repair.actions))
            if _better(report, mended, finding):
                kept.append(repair)
                report = mended
                break
    return tuple(kept)


def _is_there(finding: Finding, report: Report) -> bool:
    return any(
        other.cause == finding.cause and other.subject == finding.subject
        for other in report.findings
    )


def _better(before: Report, after: Report, mended: Finding) -> bool:
    def faults(report: Report) -> set[tuple[str, str]]:
        return {(f.cause, f.subject) for f in report.findings if f.severity != "info"}

    return (mended.cause, mended.subject) not in faults(after) and faults(after) < faults(before)


def _library_path(machine: Snapshot, finding: Finding, environ: Mapping[str, str]) -> Proposals:
    """Libraries that are installed and not found, and wrong copies that are found first."""
    if finding.subject == MACHINE:
        library = machine.driver.cuda_library
        if isinstance(library, Known):
            yield from _without(finding, environ, os.path.dirname(library.value.path), "a stub")
        return
    for framework, failing in _failing(machine, "library-path-conflict", finding):
        shadows = _shadowing(failing)
        if shadows:
            yield from _without_all(finding, environ, shadows, framework)
        yield from _search_copies(machine, finding, framework, failing)


def _broken_file(machine: Snapshot, finding: Finding, environ: Mapping[str, str]) -> Proposals:
    """A broken copy is found first, and an intact one is there as well."""
    for framework, failing in _failing(machine, "library-file-broken", finding):
        met = [
            folder.path
            for failure in failing
            for folder in failure.first.searched
            if folder.kind == "ld-library-path"
            and folder.result in ("broken", "other-architecture")
        ]
        met += _shadowing(failing)
        if met:
            yield from _without_all(finding, environ, list(dict.fromkeys(met)), framework)
        yield from _search_copies(machine, finding, framework, failing)


def _other_cudnn(machine: Snapshot, finding: Finding, environ: Mapping[str, str]) -> Proposals:
    """The cuDNN that is found first is not the one that was installed for the framework."""
    framework = _framework(machine, finding)
    if framework is None:
        return
    copies = copies_or_none(machine)
    for request in libraries_of(framework):
        if not is_cudnn(request.library) or request.path is None:
            continue
        yield from _without_all(finding, environ, [os.path.dirname(request.path)], framework)
        for copy in copies:
            if copy.origin == "wheel" and copy.soname == request.library:
                yield _searching(finding, framework, [os.path.dirname(copy.path)], [copy.soname])


def _failing(
    machine: Snapshot, fault: LibraryFault, finding: Finding
) -> Iterator[tuple[Framework, tuple[Failure, ...]]]:
    for item in failures(machine, fault):
        if not isinstance(item, Gap) and item[0].name == finding.subject:
            yield item


def _framework(machine: Snapshot, finding: Finding) -> Framework | None:
    frameworks = machine.target.frameworks
    if not isinstance(frameworks, Known):
        return None
    return next((item for item in frameworks.value if item.name == finding.subject), None)


def _shadowing(failing: tuple[Failure, ...]) -> list[str]:
    """Folders of LD_LIBRARY_PATH that gave a copy which does not work."""
    found = (found_through(failure.first) for failure in failing)
    return list(
        dict.fromkeys(
            folder.path
            for folder in found
            if folder is not None and folder.kind == "ld-library-path"
        )
    )


def _without_all(
    finding: Finding, environ: Mapping[str, str], places: list[str], framework: Framework
) -> Proposals:
    here = [entry for entry in folders(environ, LIBRARY_PATH) for p in places if same(entry, p)]
    if here:
        yield Repair(
            finding.code,
            finding.subject,
            f"{and_list(here)} removed from {LIBRARY_PATH}",
            f"{display_name(framework.name)} finds an unsuitable CUDA library there: "
            f"{finding.cause}",
            tuple(Action("remove", LIBRARY_PATH, entry, finding.cause) for entry in here),
        )


def _without(finding: Finding, environ: Mapping[str, str], place: str, what: str) -> Proposals:
    if any(same(entry, place) for entry in folders(environ, LIBRARY_PATH)):
        yield Repair(
            finding.code,
            finding.subject,
            f"{place} removed from {LIBRARY_PATH}",
            f"it has {what} of libcuda.so.1, which hides the driver's library",
            (Action("remove", LIBRARY_PATH, place, finding.cause),),
        )


def _search_copies(
    machine: Snapshot, finding: Finding, framework: Framework, failing: tuple[Failure, ...]
) -> Proposals:
    copies = copies_or_none(machine)
    places = [
        os.path.dirname(found[0])
        for failure in failing
        if (found := usable_copies(failure.first, framework, copies))
    ]
    if places:
        names = [failure.library for failure in failing]
        yield _searching(finding, framework, list(dict.fromkeys(places)), names)


def _searching(
    finding: Finding, framework: Framework, places: list[str], libraries: list[str]
) -> Repair:
    return Repair(
        finding.code,
        finding.subject,
        f"{and_list(places)} put first in {LIBRARY_PATH}",
        f"{display_name(framework.name)} {framework.version} needs {and_list(libraries)}, and the "
        "loader does not search there by default",
        tuple(
            Action("prepend", LIBRARY_PATH, place, f"{and_list(libraries)} for {framework.name}")
            for place in reversed(places)
        ),
    )


_XLA_PLACES = (
    "nvidia/cuda_nvcc",
    "nvidia/cu13",
    "nvidia/cu12",
)
"""Where wheels put ptxas and libdevice, below site-packages."""


def _xla_files(machine: Snapshot, finding: Finding, environ: Mapping[str, str]) -> Proposals:
    """XLA's ptxas and libdevice exist, in a place where XLA does not look."""
    for place in _cuda_roots(machine, environ):
        if not os.path.exists(os.path.join(place, "nvvm", "libdevice", "libdevice.10.bc")):
            continue
        actions = [
            Action("add-flag", "XLA_FLAGS", f"{XLA_DATA}={place}", "libdevice.10.bc for XLA")
        ]
        programs = os.path.join(place, "bin")
        if os.path.exists(os.path.join(programs, "ptxas")):
            actions.append(Action("prepend", "PATH", programs, "ptxas for XLA"))
        yield Repair(
            finding.code,
            finding.subject,
            f"XLA uses the CUDA files in {place}",
            "XLA needs libdevice.10.bc and ptxas to compile, and does not search there by default",
            tuple(actions),
        )


def _cuda_roots(machine: Snapshot, environ: Mapping[str, str]) -> Iterator[str]:
    interpreter = machine.target.interpreter
    if isinstance(interpreter, Known):
        for path in interpreter.value.paths:
            for place in _XLA_PLACES:
                yield os.path.join(path, place)
        yield interpreter.value.prefix
    for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        if environ.get(name):
            yield environ[name]
    yield from ("/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit")


def _xla_variable(machine: Snapshot, finding: Finding, environ: Mapping[str, str]) -> Proposals:
    """XLA_FLAGS names a CUDA folder that is not there."""
    flags = environ.get("XLA_FLAGS", "").split()
    rest = [flag for flag in flags if not flag.startswith(XLA_DATA)]
    if len(rest) == len(flags):
        return
    wrong = Action("set", "XLA_FLAGS", " ".join(rest), "the folder named there does not exist")
    for repair in _xla_files(machine, finding, environ):
        yield repair._replace(actions=(wrong, *repair.actions))
    yield Repair(
        finding.code,
        finding.subject,
        f"{XLA_DATA} removed from XLA_FLAGS",
        "the folder that it names does not exist, so XLA finds nothing",
        (wrong,),
    )


def _keras_backend(machine: Snapshot, finding: Finding, environ: Mapping[str, str]) -> Proposals:
    """Keras is set to a backend that is not installed, or that has no GPU while another has."""
    keras = machine.framework("keras")
    if not isinstance(keras, Known):
        return
    backend = keras_backend(machine, keras.value)
    if not isinstance(backend, Known):
        return
    choice = choice_of(machine, keras.value, backend.value)
    if choice.on_purpose:
        # The finding reports it, and the choice stays.
        return
    for name in BACKENDS:
        installed = machine.framework(name)  # type: ignore[arg-type]
        if name == backend.value or not isinstance(installed, Known):
            continue
        unfit = "cannot be imported here"
        if finding.cause == "keras-backend-without-gpu":
            unfit = "does not use the GPU here"
        yield Repair(
            finding.code,
            finding.subject,
            f"KERAS_BACKEND={name}, so that Keras, if imported, runs on {display_name(name)}",
            f"Keras's backend {backend.value}, {choice.sentence}, {unfit}",
            (Action("set", "KERAS_BACKEND", name, f"{backend.value} {unfit}"),),
        )


def _fewer_instructions(
    machine: Snapshot, finding: Finding, environ: Mapping[str, str]
) -> Proposals:
    """oneDNN uses instructions that are listed and fail. A limit that the user has set stays."""
    unusable = trapping_in_use(machine)
    if not isinstance(unusable, Known) or any(environ.get(name) for name in VARIABLES):
        return
    limit = limit_without(unusable.value).value
    traps = f"{and_list(list(unusable.value))} traps here, though the processor lists it"
    yield Repair(
        finding.code,
        finding.subject,
        f"oneDNN uses no more than {limit} for this run ({VARIABLES[0]}={limit})",
        traps,
        (Action("set", VARIABLES[0], limit, traps),),
    )


REPAIRERS: Mapping[str, Repairer] = {
    "library-path-conflict": _library_path,
    "library-file-broken": _broken_file,
    "cudnn-version-mismatch": _other_cudnn,
    "cudnn-copy-differs": _other_cudnn,
    "ptxas-libdevice-missing": _xla_files,
    "environment-variable-ineffective": _xla_variable,
    "keras-backend-missing": _keras_backend,
    "keras-backend-without-gpu": _keras_backend,
    "listed-instruction-traps": _fewer_instructions,
}
