"""Examines the machine before a run: what the program would see, and who can use the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from whygpu.causes import machine_catalogue
from whygpu.collectors import driver
from whygpu.collectors.background import Background
from whygpu.collectors.collect import collect
from whygpu.collectors.driver_answer import GpuIds
from whygpu.diagnosis.engine import diagnose
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known
from whygpu.model.report import Report

TIME_LIMIT = 30.0
"""Seconds for the driver to start."""


class Preflight(NamedTuple):
    """What was seen, with the UUIDs that select a GPU, which never leave this machine."""

    report: Report
    ids: tuple[GpuIds, ...]


def look(
    python: str | None, environ: Mapping[str, str], *, selecting: bool, proving: bool
) -> Preflight:
    """What a program with this environment would see. `selecting`: ask for UUIDs of GPUs."""
    host = LocalHost(environ)
    asked = Background(lambda: driver.collect(host)[1]) if selecting else None
    report = examine(python, environ, proving=proving)
    return Preflight(report, asked.result() if asked is not None else ())


def examine(python: str | None, environ: Mapping[str, str], *, proving: bool) -> Report:
    """Diagnose the machine, with its real paths: for use here, not for display.

    No framework is imported. `proving`: start the driver, in a separate process.
    """
    host = LocalHost(environ)
    seen = collect(host, python, meanwhile=machine_catalogue)
    interpreter = seen.target.interpreter
    if proving and isinstance(interpreter, Known) and isinstance(seen.driver.cuda_library, Known):
        from whygpu.probes.runner import run_probes

        seen = seen.with_probes(
            run_probes(
                interpreter.value.path,
                ("cuda",),
                timeout=TIME_LIMIT,
                environ=host.environ,
                memory_available=None,
            )
        )
    return diagnose(seen, machine_catalogue())
