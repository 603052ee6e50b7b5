"""Shared by setup detectors: what a verdict on a requirement means in an image."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import Cause
from whygpu.model.deployment import BaseImage, Setup, SetupFinding
from whygpu.model.requirement_file import ProblemKind, RequirementVerdict
from whygpu.tables.versions import release_numbers


def wanted_instead(verdict: RequirementVerdict) -> str:
    """What the planner would write in the place of a requirement; empty if it knows nothing."""
    here = verdict.requirement.place
    return next((e.replacement for e in verdict.edits if e.place.line == here.line), "")


def already_in_base(verdict: RequirementVerdict, base: BaseImage | None) -> bool:
    """Whether the base image satisfies a requirement, so that pip installs nothing."""
    if base is None or base.framework != "tensorflow" or not base.uses_gpu:
        return False
    wanted = verdict.requirement.specifier
    if not wanted or not base.version:
        return True
    # Imported here because a check of a machine does not need it: it costs a tenth of its time.
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(wanted).contains(base.version)
    # InvalidSpecifier is one; Python raises another for numbers of thousands of digits.
    except ValueError:
        return True


def has_removed_package(verdict: RequirementVerdict, base: BaseImage | None) -> bool:
    """Whether the base image has the old package tensorflow-gpu, so that pip installs nothing.

    The images for GPUs were built with it before it was removed. Tags with `py3` ended in 2020.
    """
    if base is None or base.framework != "tensorflow" or not base.uses_gpu:
        return False
    if verdict.kind != "removed" or verdict.requirement.specifier:
        return False
    return "py3" in base.tag or bool(base.version and release_numbers(base.version) < (2, 12))


def unfit_requirements(cause: Cause, setup: Setup, kind: ProblemKind) -> Iterator[SetupFinding]:
    """The requirements that do not fit the driver or the GPU of the machine that the user named."""
    if setup.machine is None or setup.for_cpu or setup.kind not in ("image", "requirements"):
        return
    for verdict in setup.verdicts:
        requirement = verdict.requirement
        if verdict.kind != kind or verdict.is_alternative:
            continue
        wanted = wanted_instead(verdict)
        yield cause.in_setup(
            requirement.place,
            subject=requirement.name,
            message=f"{requirement.name} {verdict.reason}",
            fix=f"Write {wanted}." if wanted else verdict.advice or "Choose another release.",
            rests_on=("packages", "arguments"),
        )
