"""Joins the collectors: all that can be seen of a machine and a target without running it."""

from __future__ import annotations

import time
from collections.abc import Callable

from whygpu.collectors import (
    cuda_files,
    driver,
    environment,
    frameworks,
    graphics,
    installer,
    instructions,
    interpreter,
    packages,
    requirements,
    system,
)
from whygpu.collectors.background import Background
from whygpu.collectors.loader import LoaderProcess
from whygpu.errors import UsageError
from whygpu.host.base import Host
from whygpu.model.libraries import CudaFiles
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.model.system import Cpu
from whygpu.model.target import Interpreter, Target
from whygpu.version import VERSION

NOT_PROBED = "probes were left out (--no-probe)"


def collect(
    host: Host, python: str | None, *, meanwhile: Callable[[], object] = lambda: None
) -> Snapshot:
    """A snapshot without probes. `python` names the target; None means the active environment.

    `meanwhile` is work of the caller's that can be done while the target is being asked.
    """
    try:
        chosen = (
            interpreter.find_default(host) if python is None else interpreter.resolve(host, python)
        )
    except interpreter.NoInterpreter as error:
        raise UsageError(str(error)) from error
    # The driver and the target answer in processes of their own: wait for both at once.
    asked = Background(lambda: _target(host, chosen))
    machine = system.collect(host)
    tried = _tried(host, machine.cpu)
    devices = graphics.collect(host)
    nvidia, gpu_ids = driver.collect(host)
    variables = environment.collect(host, nvidia, gpu_ids)
    meanwhile()
    target, files = asked.result()
    silent = target.interpreter
    return Snapshot(
        schema=SCHEMA,
        whygpu=VERSION,
        taken=time.strftime("%Y-%m-%d"),
        system=machine._replace(cpu=tried.result()) if tried is not None else machine,
        graphics=devices,
        driver=nvidia,
        environment=variables,
        cuda=files,
        target=target,
        probes=(),
        probes_left_out=silent.reason if isinstance(silent, Unknown) else NOT_PROBED,
    )


def _tried(host: Host, cpu: Cpu) -> Background[Cpu] | None:
    if not instructions.suspected(cpu):
        return None
    return Background(lambda: instructions.tried(host, cpu))


def _target(host: Host, python: str) -> tuple[Target, Observed[CudaFiles]]:
    told = interpreter.collect(host, python)
    # An interpreter that does not start still has its packages around it.
    known = told if isinstance(told, Known) else interpreter.layout(host, python)
    if not isinstance(known, Known):
        unread = Unknown(told.reason if isinstance(told, Unknown) else f"no {python}")
        return Target(told, unread, unread, unread), unread
    folders = cuda_files.library_folders(host, known.value)
    # Libraries that do not say their version in their name are asked for it, in a process.
    copies = Background(lambda: cuda_files.collect(host, known.value, folders))
    installed = packages.collect(host, known.value)
    target = Target(
        interpreter=told,
        packages=installed,
        conflicts=requirements.conflicts(installed),
        frameworks=frameworks.collect(host, known, installed, _loaders(host, known.value, folders)),
        installer=Known(installer.collect(host, known.value, installed), known.source),
    )
    return target, copies.result()


def _loaders(
    host: Host, target: Interpreter, folders: tuple[cuda_files.LibraryFolder, ...]
) -> Callable[[], LoaderProcess]:
    return lambda: LoaderProcess(host, target.path, folders)
