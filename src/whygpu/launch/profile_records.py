"""Reads the profile that a process of a run recorded, and the files of its framework's profiler."""

from __future__ import annotations

import os.path
from typing import Any

from whygpu.host.local import LocalHost
from whygpu.model.codec import decode_parts
from whygpu.model.observed import Known, Unknown
from whygpu.model.profile import FrameworkProfile, ProcessProfile
from whygpu.model.units import size_text


def decoded(data: dict[str, Any], folder: str) -> tuple[ProcessProfile, tuple[str, ...]]:
    """The profile, and what of it could not be read. The program can write anything in there."""
    profile, errors = decode_parts(ProcessProfile, data, "profile.")
    for path in profile.files[:1]:
        from whygpu.profiling.xplane import BrokenProfile

        if os.path.dirname(os.path.realpath(path)).startswith(os.path.realpath(folder) + os.sep):
            try:
                profile = profile._replace(framework=_framework_profile(path))
            except BrokenProfile as error:
                errors = (*errors, f"the profile of the framework: {error}")
    return profile._replace(files=()), errors


def _framework_profile(path: str) -> FrameworkProfile | None:
    from whygpu.profiling.xplane import LARGEST_FILE, BrokenProfile, read_planes, summary

    content = LocalHost().read_bytes(path, LARGEST_FILE + 1)
    if not isinstance(content, Known):
        raise BrokenProfile(content.reason if isinstance(content, Unknown) else "it is gone")
    if len(content.value) > LARGEST_FILE:
        raise BrokenProfile(f"it has more than {size_text(LARGEST_FILE)}")
    return summary(read_planes(content.value))
