"""Shared by setup detectors: what a verdict on a requirement means in an image."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from whygpu.model.deployment import BaseImage
from whygpu.model.requirement_file import RequirementVerdict


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
    try:
        return SpecifierSet(wanted).contains(base.version)
    except InvalidSpecifier:
        return True
