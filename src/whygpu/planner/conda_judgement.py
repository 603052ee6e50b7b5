"""Whether the packages of conda in a file are builds for the GPU.

The release table has no builds of conda. Their names and build strings show only whether they are
for the CPU or for CUDA.
"""

from __future__ import annotations

import re

from whygpu.model.derived import display_name
from whygpu.model.machine_spec import dotted
from whygpu.model.observed import Known
from whygpu.model.requirement_file import (
    FileFormat,
    LineEdit,
    PinnedRequirement,
    ProblemKind,
    RequirementVerdict,
)
from whygpu.planner.file_builds import FileContext
from whygpu.planner.file_edits import Change, renamed, unknown, with_change, without
from whygpu.planner.wishes import contains
from whygpu.tables.conda_builds import PYTORCH_CUDA, conda_build
from whygpu.tables.cuda_architectures import built_for
from whygpu.tables.versions import release_numbers
from whygpu.tables.windows_driver_floors import floors_for

_CUDA_BUILD = re.compile(r"cuda|gpu")
_CPU_BUILD = re.compile(r"cpu|mkl|eigen")
"""MKL and Eigen are the kinds of CPU builds of old releases; builds with CUDA name MKL as well."""
_CUDA_RELEASE = re.compile(r"cuda_?(?:(?P<dotted>\d{1,2}\.\d)|(?P<major>\d{2})(?P<minor>\d)(?!\d))")
"""cuda12.4 in builds of the channel pytorch, cuda129 in those of conda-forge."""
_DECIDE = frozenset(("pytorch-cuda", "cpuonly", "pytorch-gpu", "pytorch-cpu", "tensorflow-gpu"))
"""Packages that choose the build, whatever conda's solver would choose."""


def conda_verdict(
    requirement: PinnedRequirement, kind: FileFormat, context: FileContext
) -> RequirementVerdict | None:
    """None for packages that do not decide whether the GPU is used."""
    if requirement.name == "pytorch-cuda":
        return _pytorch_cuda(requirement, context)
    row = conda_build(requirement.name)
    if row is None:
        return None
    if row.role == "cpu" or _is_cpu_build(requirement):
        reason = f"brings the build of {display_name(row.framework)} for the CPU"
        verdict = RequirementVerdict(requirement, "cannot", reason, "cpu-build")
        return with_change(verdict, _change(requirement, row.gpu_name, kind, context))
    if row.role == "gpu" or _CUDA_BUILD.search(requirement.build.lower()):
        return _refuted(requirement, _cuda_of_build(requirement.build), context) or unknown(
            requirement,
            "is a CUDA build, but for which drivers and GPUs is not on record for conda",
        )
    if any(name != requirement.name and name in _DECIDE for name in context.ranges):
        # That package has a verdict of its own.
        return None
    toolkit = re.search(r"\d+\.\d+", context.ranges.get("cudatoolkit", ""))
    if toolkit is not None and (refuted := _refuted(requirement, toolkit.group(), context)):
        return refuted
    reason = (
        "may be a build for the CPU: conda chooses by the driver of the machine on which the "
        "environment is created, and there is none while most containers are built"
    )
    verdict = unknown(requirement, reason)
    of_torch = row.framework == "torch" and requirement.channel == "pytorch"
    if of_torch and kind == "environment.yml":
        # This channel has no package pytorch-gpu: another one decides there.
        cuda = _newest_pytorch_cuda(context)
        edit = LineEdit(requirement.place, f"{requirement.place.text}\n- pytorch-cuda={cuda}")
        return with_change(verdict, Change((edit,))) if cuda else verdict
    if not row.gpu_name:
        return verdict
    return with_change(verdict, _change(requirement, row.gpu_name, kind, context))


def _is_cpu_build(requirement: PinnedRequirement) -> bool:
    build = requirement.build.lower()
    return _CPU_BUILD.search(build) is not None and not _CUDA_BUILD.search(build)


def _cuda_of_build(build: str) -> str:
    """The CUDA release in a build string; empty if there is none."""
    match = _CUDA_RELEASE.search(build.lower())
    if match is None:
        return ""
    return match["dotted"] or f"{match['major']}.{match['minor']}"


def _refuted(
    requirement: PinnedRequirement, cuda: str, context: FileContext
) -> RequirementVerdict | None:
    """Why no build for this CUDA release can use the GPU; None if one may."""
    if cuda and _driver_runs(cuda, context) is False:
        floor = floors_for(context.machine.platform_name, cuda)[0].driver
        reason = f"is a build for CUDA {cuda}, which needs driver {floor} or newer"
        return RequirementVerdict(requirement, "cannot", reason, "driver-too-old")
    row = built_for(cuda) if cuda else None
    if row is None or not isinstance(context.machine.gpus, Known):
        return None
    for gpu in context.machine.gpus.value:
        # Code for one generation runs on its later members, and not on another generation.
        is_new = gpu.capability[0] > row.newest[0]
        if is_new or gpu.capability < row.oldest:
            reason = (
                f"is a build for CUDA {cuda}, which does not support {gpu.name} "
                f"({dotted(gpu.capability)})"
            )
            kind: ProblemKind = "gpu-too-new" if is_new else "gpu-too-old"
            return RequirementVerdict(requirement, "cannot", reason, kind)
    return None


def _change(
    requirement: PinnedRequirement, gpu_name: str, kind: FileFormat, context: FileContext
) -> Change:
    if kind == "pixi.lock":
        wanted = gpu_name or "the CUDA build"
        return Change(
            advice=f"In pixi.toml, ask for {wanted} and set `cuda` in [system-requirements]; "
            f"then run `pixi update {requirement.name}`."
        )
    if kind == "conda-lock.yml":
        wanted = gpu_name or "the CUDA build"
        return Change(
            advice=f"In environment.yml, ask for {wanted}; then run `conda-lock` with "
            "`--virtual-package-spec`, which says that the machine has a driver."
        )
    if requirement.name == "cpuonly":
        is_chosen = "pytorch-cuda" in context.ranges
        cuda = None if is_chosen else _newest_pytorch_cuda(context)
        return renamed(requirement, f"pytorch-cuda={cuda}") if cuda else without(requirement, kind)
    if _is_cpu_build(requirement):
        return _replaced(requirement, requirement.build, "*cuda*")
    return renamed(requirement, gpu_name)


def _replaced(requirement: PinnedRequirement, old: str, new: str) -> Change:
    line = requirement.place.text.replace(old, new)
    return Change((LineEdit(requirement.place, line),))


def _pytorch_cuda(requirement: PinnedRequirement, context: FileContext) -> RequirementVerdict:
    match = re.search(r"\d+\.\d+", requirement.specifier)
    if match is None or _driver_runs(match.group(), context) is not False:
        reason = "chooses a CUDA build, but for which GPUs is not on record for conda"
        refuted = _refuted(requirement, match.group(), context) if match else None
        return refuted or unknown(requirement, reason)
    floor = floors_for(context.machine.platform_name, match.group())[0].driver
    reason = f"is for CUDA {match.group()}, which needs driver {floor} or newer"
    verdict = RequirementVerdict(requirement, "cannot", reason, "no-release-fits")
    older = _newest_pytorch_cuda(context)
    if older is None:
        return verdict
    return with_change(verdict, _replaced(requirement, match.group(), older))


def _newest_pytorch_cuda(context: FileContext) -> str | None:
    """The newest release of pytorch-cuda that certainly runs on the driver, for the newest PyTorch
    that the file allows.
    """
    wanted = context.ranges.get("pytorch", "")
    for release, cudas in PYTORCH_CUDA.items():
        if _allows(wanted, release):
            return next((cuda for cuda in cudas if _driver_runs(cuda, context)), None)
    return None


def _allows(specifier: str, release: str) -> bool:
    """Whether a range has a patch release of this minor one."""
    try:
        return any(contains(specifier, f"{release}.{patch}") for patch in range(3))
    except ValueError:
        return False


def _driver_runs(cuda: str, context: FileContext) -> bool | None:
    """Whether the driver runs a CUDA release; None if the driver is not known."""
    driver = context.machine.driver
    floors = floors_for(context.machine.platform_name, cuda)
    if not isinstance(driver, Known) or not floors:
        return None
    return release_numbers(driver.value) >= release_numbers(floors[0].driver)
