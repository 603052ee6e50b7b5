"""A profile as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from typing import Any

from whygpu.model.profile import ProcessProfile, ProfileOptions
from whygpu.profiling.attribution import samples_of
from whygpu.profiling.judge import chosen_profile, samples_between, steps_of

_STEPS, _SAMPLES, _KERNELS, _COPIES = 1, 2, 3, 4
MOST_KERNELS = 100_000


def trace_events(
    profiles: tuple[ProcessProfile, ...], options: ProfileOptions, *, on_gpu: bool
) -> dict[str, Any]:
    """Tracks of the steps, of what the program was doing, and of what the GPU was doing."""
    profile = chosen_profile(profiles)
    events = [_named(_STEPS, "steps"), _named(_SAMPLES, "what the program was doing")]
    if profile is not None:
        events += _steps(profile, options)
        events += _slices(profile, options, on_gpu)
        events += _device(profile)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _named(track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": track, "name": "thread_name", "args": {"name": name}}


def _slice(track: int, name: str, begin: float, end: float, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": 1,
        "tid": track,
        "name": name,
        "ts": round(begin * 1e6, 3),
        "dur": round((end - begin) * 1e6, 3),
        "args": more,
    }


def _steps(profile: ProcessProfile, options: ProfileOptions) -> Iterator[dict[str, Any]]:
    found = steps_of(profile, options)
    if found is None:
        return
    times = found.marks.times
    for number in range(1, len(times)):
        step = (number + 1) * found.marks.stride
        yield _slice(_STEPS, f"step {step}", times[number - 1], times[number])


def _device(profile: ProcessProfile) -> Iterator[dict[str, Any]]:
    """Kernels and copies, in the part of the time in which the framework's profiler ran."""
    recording = profile.device
    if recording is None:
        return
    yield _named(_KERNELS, f"GPU {recording.device}: kernels")
    for kernel in recording.kernels[:MOST_KERNELS]:
        yield _slice(_KERNELS, kernel.name, kernel.begin, kernel.end, blocks=kernel.blocks)
    yield _named(_COPIES, f"GPU {recording.device}: copies")
    for copy in recording.copies[:MOST_KERNELS]:
        kind = {True: "pageable", False: "pinned", None: "unknown"}[copy.pageable]
        yield _slice(
            _COPIES, f"copy {copy.direction}", copy.begin, copy.end, bytes=copy.bytes, memory=kind
        )


def _slices(
    profile: ProcessProfile, options: ProfileOptions, on_gpu: bool
) -> Iterator[dict[str, Any]]:
    """Samples that follow each other and show the same are one slice."""
    found = steps_of(profile, options)
    if found is None:
        samples = samples_of(profile, 0.0, profile.seconds, on_gpu=on_gpu)
    else:
        samples = samples_between(profile, found, 0.0, profile.seconds, on_gpu)
    begin, shown, place = 0.0, "", ""
    for sample in samples:
        where = sample.kind.inside or sample.kind.where
        here = f"{os.path.basename(where.file)}:{where.line} {where.text}" if where else ""
        if (sample.kind.category, here) != (shown, place):
            if shown:
                yield _slice(_SAMPLES, shown, begin, sample.end - sample.seconds, line=place)
            begin, shown, place = sample.end - sample.seconds, sample.kind.category, here
    if samples and shown:
        yield _slice(_SAMPLES, shown, begin, samples[-1].end, line=place)
