"""Joins the collectors: all that can be seen of a machine and a target without running it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from whygpu.collectors import (
    cuda_files,
    driver,
    environment,
    frameworks,
    graphics,
    interpreter,
    packages,
    requirements,
    system,
)
from whygpu.collectors.loader import LoaderProcess
from whygpu.errors import UsageError
from whygpu.host.base import Host
from whygpu.model.libraries import CudaFiles
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.model.target import Interpreter, Target
from whygpu.version import VERSION

NOT_PROBED = "probes were left out (--no-probe)"


def collect(host: Host, python: str | None) -> Snapshot:
    """A snapshot without probes. `python` names the target; None means the active environment."""
    try:
        chosen = interpreter.resolve(host, python) if python else interpreter.find_default(host)
    except interpreter.NoInterpreter as error:
        raise UsageError(str(error)) from error
    # The driver and the target answer in processes of their own: wait for both at once.
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked: Future[tuple[Target, Observed[CudaFiles]]] = pool.submit(_target, host, chosen)
        machine = system.collect(host)
        devices = graphics.collect(host)
        nvidia, gpu_ids = driver.collect(host)
        variables = environment.collect(host, nvidia, gpu_ids)
        target, files = asked.result()
    silent = target.interpreter
    return Snapshot(
        schema=SCHEMA,
        whygpu=VERSION,
        taken=datetime.date.today().isoformat(),
        system=machine,
        graphics=devices,
        driver=nvidia,
        environment=variables,
        cuda=files,
        target=target,
        probes=(),
        probes_left_out=silent.reason if isinstance(silent, Unknown) else NOT_PROBED,
    )


def _target(host: Host, python: str) -> tuple[Target, Observed[CudaFiles]]:
    told = interpreter.collect(host, python)
    # An interpreter that does not start still has its packages around it.
    known = told if isinstance(told, Known) else interpreter.layout(host, python)
    if not isinstance(known, Known):
        unread = Unknown(known.reason if isinstance(known, Unknown) else known.source)
        return Target(told, unread, unread, unread), unread
    folders = cuda_files.library_folders(host, known.value)
    installed = packages.collect(host, known.value)
    target = Target(
        interpreter=told,
        packages=installed,
        conflicts=requirements.conflicts(installed),
        frameworks=frameworks.collect(host, known, installed, _loaders(host, known.value, folders)),
    )
    return target, cuda_files.collect(host, known.value, folders)


def _loaders(
    host: Host, target: Interpreter, folders: tuple[cuda_files.LibraryFolder, ...]
) -> Callable[[], LoaderProcess]:
    return lambda: LoaderProcess(host, target.path, folders)
