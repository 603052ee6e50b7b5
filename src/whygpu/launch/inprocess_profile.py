"""Profiles a part of the running program: `with whygpu.profile():`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from whygpu.errors import UsageError
from whygpu.launch.inprocess import bootstrap
from whygpu.launch.profile_records import decoded
from whygpu.model.profile import ProcessProfile

_FRAMEWORKS = ("tensorflow", "torch", "jax", "keras")


@contextmanager
def recorded() -> Iterator[list[ProcessProfile]]:
    """Record what this process does in the block. The list has the profile after it."""
    imported = [name for name in _FRAMEWORKS if name in sys.modules]
    if not imported:
        raise UsageError("no framework is imported yet: import it before whygpu.profile()")
    recorder = bootstrap("profile.recorder")
    if recorder.is_recording():
        raise UsageError("this program is being profiled already")
    found: list[ProcessProfile] = []
    with tempfile.TemporaryDirectory(prefix="whygpu-profile-") as folder:
        recorder.begin(folder)
        try:
            for name in imported:
                bootstrap(f"profile.{name}").start(sys.modules[name])
            yield found
        finally:
            found.append(decoded(recorder.result(), folder)[0])
