"""The look at the machine before a run: what the program would find, and who can use the GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whygpu.causes import catalogue
from whygpu.collectors import driver
from whygpu.collectors.background import Background
from whygpu.collectors.collect import collect
from whygpu.collectors.driver_answer import GpuIds
from whygpu.engine import diagnose
from whygpu.host.base import Completed
from whygpu.host.local import LocalHost
from whygpu.model.observed import Observed
from whygpu.model.report import Report


class PlannedHost(LocalHost):
    """This machine, as a program with another environment finds it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._planned = dict(environ)

    @property
    def environ(self) -> Mapping[str, str]:
        return self._planned

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        return super().run(command, timeout=timeout, env=self._planned if env is None else env)


class Preflight(NamedTuple):
    """What was seen, with the names that select a GPU: those never leave this machine."""

    report: Report
    ids: tuple[GpuIds, ...]


def look(python: str | None, environ: Mapping[str, str], *, selecting: bool) -> Preflight:
    """Files and the driver; nothing of the target is imported. `selecting`: GPUs by name."""
    host = PlannedHost(environ)
    asked = Background(lambda: driver.collect(host)[1]) if selecting else None
    report = examine(python, environ)
    return Preflight(report, asked.result() if asked is not None else ())


def examine(python: str | None, environ: Mapping[str, str]) -> Report:
    """Diagnose the machine without probes, with its real paths: for use here, not for showing."""
    return diagnose(collect(PlannedHost(environ), python, meanwhile=catalogue), catalogue())
