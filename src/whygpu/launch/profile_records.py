"""Reads the profile that a process of a run recorded, and the file of its framework's profiler."""

from __future__ import annotations

import os.path
from typing import Any

from whygpu.host.local import LocalHost
from whygpu.model.codec import decode_parts
from whygpu.model.observed import Known, Unknown
from whygpu.model.profile import ProcessProfile
from whygpu.model.units import size_text


def decoded(data: dict[str, Any], folder: str) -> tuple[ProcessProfile, tuple[str, ...]]:
    """The profile, and what of it could not be read. The program can write anything in there."""
    profile, errors = decode_parts(ProcessProfile, data, "profile.")
    run = profile.recording
    for path in run.files[:1]:
        from whygpu.profiling.broken_profile import BrokenProfile

        if os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep):
            try:
                profile = _with_file(profile, path)
            except BrokenProfile as error:
                run = run._replace(problem=f"its file cannot be read: {error}")
    return profile._replace(recording=run._replace(files=())), errors


def _with_file(profile: ProcessProfile, path: str) -> ProcessProfile:
    from whygpu.profiling import kineto, tf_data_profile, xplane, xplane_device

    run = profile.recording
    if run.kind == "kineto":
        content = _content(path, kineto.LARGEST_FILE)
        return profile._replace(device=kineto.read_kineto(content, run))
    planes = xplane.read_planes(
        _content(path, xplane.LARGEST_FILE),
        lambda name: xplane_device.is_of_host(name) or tf_data_profile.is_of_pipeline(name),
    )
    return profile._replace(
        framework=tf_data_profile.summary(planes),
        device=xplane_device.device_recording(planes, run),
    )


def _content(path: str, largest: int) -> bytes:
    from whygpu.profiling.broken_profile import BrokenProfile

    content = LocalHost().read_bytes(path, largest + 1)
    if not isinstance(content, Known):
        raise BrokenProfile(content.reason if isinstance(content, Unknown) else "it is gone")
    if len(content.value) > largest:
        raise BrokenProfile(f"it has more than {size_text(largest)}")
    return content.value
