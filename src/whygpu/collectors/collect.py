"""Runs all collectors: everything that can be seen without running the frameworks."""

from __future__ import annotations

import time
from collections.abc import Callable

from whygpu.collectors import (
    amd,
    cuda_files,
    driver,
    environment,
    frameworks,
    graphics,
    installer,
    instructions,
    intel,
    interpreter,
    kernel_log,
    packages,
    requirements,
    system,
)
from whygpu.collectors.background import Background
from whygpu.collectors.loader import LoaderProcess
from whygpu.host.base import Host
from whygpu.model.driver import Driver, GraphicsDevice
from whygpu.model.environment import Environment
from whygpu.model.libraries import CudaFiles
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.model.system import Cpu
from whygpu.model.target import Interpreter, Package, Target
from whygpu.version import VERSION

NOT_PROBED = "the frameworks were not run (--no-probe)"
NOT_FOR_A_PLAN = "a plan does not need it"
GIVEN = Unknown("given by an option")


def collect(
    host: Host, python: str | None, *, meanwhile: Callable[[], object] = lambda: None
) -> Snapshot:
    """A snapshot without probes. `python` names the target; None means the active environment.

    `meanwhile` is work of the caller that can be done while the target answers.
    """
    chosen = interpreter.find(host, python)
    # The driver and the target answer in separate processes: wait for both at once.
    asked = Background(lambda: _target(host, chosen))
    machine = system.collect(host)
    tried = _tried(host, machine.cpu)
    devices = graphics.collect(host)
    logged = Background(lambda: kernel_log.collect(host)) if _has_nvidia(devices) else None
    nvidia, gpu_ids = driver.collect(host)
    nvidia = nvidia._replace(
        xids=logged.result() if logged else kernel_log.not_read(devices, nvidia.gpus)
    )
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
        amd=amd.collect(host, devices),
        intel=intel.collect(host, devices),
    )


def collect_for_plan(
    host: Host,
    python: str | None,
    *,
    asks_python: bool,
    asks_driver: bool,
    needs_frameworks: Callable[[tuple[Package, ...]], bool],
) -> Snapshot:
    """The facts that decide which releases fit.

    The interpreter and the driver are not queried if the user has given their facts. The frameworks
    are examined only if `needs_frameworks` returns true for the installed packages.
    """
    asked = Background(lambda: _for_plan(host, python, needs_frameworks)) if asks_python else None
    machine = system.collect(host)
    devices = graphics.collect(host)
    nvidia = driver.collect(host)[0] if asks_driver else _driver_not_asked()
    unread = Unknown(NOT_FOR_A_PLAN)
    target = Target(GIVEN, unread, unread, unread) if asked is None else asked.result()
    return Snapshot(
        schema=SCHEMA,
        whygpu=VERSION,
        taken=time.strftime("%Y-%m-%d"),
        system=machine,
        graphics=devices,
        driver=nvidia,
        environment=Environment((), Absent(NOT_FOR_A_PLAN)),
        cuda=unread,
        target=target,
        probes=(),
        probes_left_out=NOT_FOR_A_PLAN,
        amd=unread,
        intel=unread,
    )


def _for_plan(
    host: Host, python: str | None, needs_frameworks: Callable[[tuple[Package, ...]], bool]
) -> Target:
    path = interpreter.find(host, python)
    answer = interpreter.collect(host, path)
    unread = Unknown(NOT_FOR_A_PLAN)
    if not isinstance(answer, Known):
        reason = answer.reason if isinstance(answer, Unknown) else answer.source
        return Target(Unknown(reason), unread, unread, unread)
    known = Known(answer.value, "the target interpreter")
    found = installer.collect(host, known.value, unread)
    target = Target(known, unread, unread, unread, Known(found, known.source))
    installed = packages.collect(host, known.value)
    if not isinstance(installed, Known) or not needs_frameworks(installed.value):
        return target
    loaders = _loaders(host, known.value, cuda_files.library_folders(host, known.value))
    return target._replace(
        packages=installed, frameworks=frameworks.collect(host, known, installed, loaders)
    )


def _driver_not_asked() -> Driver:
    return Driver(GIVEN, "", GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN, GIVEN)


def _has_nvidia(devices: Observed[tuple[GraphicsDevice, ...]]) -> bool:
    return isinstance(devices, Known) and any(each.vendor == "nvidia" for each in devices.value)


def _tried(host: Host, cpu: Cpu) -> Background[Cpu] | None:
    if not instructions.suspected(cpu):
        return None
    return Background(lambda: instructions.tried(host, cpu))


def _target(host: Host, python: str) -> tuple[Target, Observed[CudaFiles]]:
    answer = interpreter.collect(host, python)
    # An interpreter that does not start still has its packages on disk.
    known = answer if isinstance(answer, Known) else interpreter.layout(host, python)
    if not isinstance(known, Known):
        unread = Unknown(answer.reason if isinstance(answer, Unknown) else f"no {python}")
        return Target(answer, unread, unread, unread), unread
    folders = cuda_files.library_folders(host, known.value)
    # Libraries without a version in their name are queried for it in a separate process.
    copies = Background(lambda: cuda_files.collect(host, known.value, folders))
    installed = packages.collect(host, known.value)
    target = Target(
        interpreter=answer,
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
