"""The NVIDIA driver is too old for the CUDA release that a framework was built for.

## Why it happens

Newer drivers run programs for every older CUDA release, and not the other way round. From CUDA 11
on, one driver serves all minor releases of a major one: any CUDA 12 build runs on 525.60.13 or
newer. Before CUDA 11 every release had its own lowest driver. An upgraded framework, or a
container image newer than the host, is where the two part.

## What it looks like

`CUDA driver version is insufficient for CUDA runtime version`, error 35, at the first operation.
TensorFlow lists the GPU and then fails; PyTorch says `The NVIDIA driver on your system is too old
(found version 11040)` and reports no GPU.

## Fix

Update the driver (on the host, when the program runs in a container), or install a build of the
framework for a CUDA release that the driver runs.

## Fires on (machine)

```toml
only = ["torch"]
[driver]
version = "470.57.02"
cuda = "11.4"
```

## Quiet on (machine)

Minor releases do not matter from CUDA 11 on: a CUDA 12.8 build runs on the first driver for 12.0.

```toml
only = ["torch"]
[driver]
version = "525.60.13"
cuda = "12.0"
```

## Cannot tell on (machine)

```toml
only = ["torch"]
[driver]
version = {unknown = "NVML gave no answer within 5 s"}
cuda = {unknown = "NVML gave no answer within 5 s"}
```

A CUDA release that is not on record yet:

```toml
only = ["torch"]
[target.frameworks.torch.build]
cuda = "99.0"
```

## Sources

- <https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html>
- <https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.shared_builds import cuda_builds, titled
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Known, Observed, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.driver_floors import FAMILIES_FROM, driver_floors
from whygpu.tables.tensorflow_builds import BUILDS
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG106",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("cuda-init-failed", "gpu-unused", "keras-backend-without-gpu"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    frameworks = tuple(cuda_builds(machine))
    if not frameworks:
        return
    driver = _driver(machine)
    for framework in frameworks:
        cuda = framework.build.cuda
        if isinstance(cuda, Absent):
            continue
        if isinstance(cuda, Unknown):
            yield Gap(f"the CUDA release that {titled(framework)} was built for: {cuda.reason}")
            continue
        needed = driver.short_of(cuda.value)
        if isinstance(needed, Gap):
            yield Gap(f"{titled(framework)}: {needed.reason}")
        elif needed is not None:
            yield CAUSE.finding(
                subject=framework.name,
                message=(
                    f"{titled(framework)} is built for CUDA {cuda.value}, which needs {needed}; "
                    f"this machine has {driver.said}"
                ),
                evidence=(driver.evidence, seen(cuda, f"built for CUDA {cuda.value}")),
                remedies=_remedies(machine, framework, needed, driver),
            )


class _Driver(NamedTuple):
    """The driver that programs get, as far as it can be compared with CUDA releases."""

    linux: str | None
    """Its version; None where it is not a Linux driver's, or not known."""
    cuda: str | None
    """The newest CUDA version it supports."""
    evidence: Evidence

    @property
    def said(self) -> str:
        if self.linux is None:
            return f"a driver whose newest CUDA version is {self.cuda}"
        return f"driver {self.linux}" + (
            f", whose newest CUDA version is {self.cuda}" if self.cuda else ""
        )

    def runs(self, cuda: str) -> bool | None:
        """Whether the driver runs programs for a CUDA release; None when that is not on record."""
        if self.linux is None:
            assert self.cuda is not None
            wanted = release_numbers(cuda)
            precision = 1 if wanted[:1] >= (FAMILIES_FROM,) else 2
            return release_numbers(self.cuda)[:precision] >= wanted[:precision]
        answers = {
            release_numbers(row.driver) <= release_numbers(self.linux)
            for row in driver_floors(cuda)
        }
        return answers.pop() if len(answers) == 1 else None

    def short_of(self, cuda: str) -> str | Gap | None:
        """The driver that would be needed; None when this one will do."""
        runs = self.runs(cuda)
        if runs:
            return None
        floors = driver_floors(cuda)
        if runs is None:
            known = " or ".join(row.driver for row in floors)
            return Gap(
                f"whether driver {self.linux} is new enough for CUDA {cuda}: "
                + (f"its builds need {known}" if known else "no driver floor is on record")
            )
        if self.linux is None:
            return f"a driver for CUDA {cuda.partition('.')[0]}"
        return f"driver {floors[-1].driver} or newer"


def _driver(machine: Snapshot) -> _Driver:
    """Ends the judgement where there is no driver, or nothing of it is known."""
    driver = machine.driver
    cuda = driver.cuda.value if isinstance(driver.cuda, Known) else None
    library = driver.cuda_library
    version: Observed[str] = driver.version
    if isinstance(library, Known) and library.value.kind == "compat":
        # NVIDIA's forward-compatibility package stands in for a newer driver.
        version = library.value.version
    windows = isinstance(machine.system.wsl, Known)
    if windows or not isinstance(version, Known):
        # Windows numbers its drivers differently, but both tell the CUDA version they support.
        if isinstance(driver.cuda, Known):
            return _Driver(None, cuda, seen(driver.cuda, f"supports CUDA up to {cuda}"))
        need(driver.cuda if windows else version)
    known = need(version)
    return _Driver(known, cuda, seen(version, f"driver {known}"))


def _remedies(
    machine: Snapshot, framework: Framework, needed: str, driver: _Driver
) -> tuple[Remedy, ...]:
    if isinstance(machine.system.wsl, Known):
        update = Remedy(f"Update the NVIDIA driver in Windows: {needed} is required.")
    elif isinstance(machine.system.container, Known):
        update = Remedy(
            f"Update the NVIDIA driver of the host to {_floor(needed)}; a container uses the "
            "host's driver."
        )
    else:
        distribution = machine.system.distribution
        ubuntu = isinstance(distribution, Known) and distribution.value.startswith("Ubuntu")
        update = Remedy(
            f"Update the NVIDIA driver to {_floor(needed)}, then restart the machine.",
            "sudo ubuntu-drivers install" if ubuntu else None,
        )
    other = _other_build(framework, driver)
    return (update,) if other is None else (update, other)


def _floor(needed: str) -> str:
    return needed.removeprefix("driver ")


def _other_build(framework: Framework, driver: _Driver) -> Remedy | None:
    """A build of the framework that this driver runs, where one exists."""
    if framework.name == "torch":
        for cuda, index in (("12.6", "cu126"), ("11.8", "cu118")):
            if driver.runs(cuda):
                return Remedy(
                    f"Or install a PyTorch build for CUDA {cuda}, which this driver runs.",
                    "python -m pip uninstall -y torch && python -m pip install torch "
                    f"--index-url https://download.pytorch.org/whl/{index}",
                )
    if framework.name == "jax" and driver.runs("12.0"):
        return Remedy(
            "Or install JAX for CUDA 12, which this driver runs.",
            "python -m pip install 'jax[cuda12]'",
        )
    if framework.name == "tensorflow":
        for row in reversed(BUILDS):
            if driver.runs(row.cuda):
                release = ".".join(map(str, row.last))
                return Remedy(
                    f"Or install TensorFlow {release}, the newest release built for a CUDA that "
                    f"this driver runs ({row.cuda}), in an environment with a Python of its time."
                )
    return None
