"""The NVIDIA driver is too old for the CUDA release that a framework was built for.

## Why it happens

A newer driver runs programs for every older CUDA release, but an older driver does not run programs
for newer ones. From CUDA 11 on, one driver supports all minor releases of a major release: any CUDA
12 build runs on 525.60.13 or newer. Before CUDA 11 every release had its own minimum driver. The
driver becomes too old when the framework is upgraded, or when a container image is newer than the
host.

## What it looks like

`CUDA driver version is insufficient for CUDA runtime version`, error 35, at the first operation.
TensorFlow lists the GPU and then fails. PyTorch prints `The NVIDIA driver on your system is too old
(found version 11040)` and reports no GPU.

## Fix

Update the driver (for a container, on the host), or install a build of the framework for a CUDA
release that the driver supports.

## Fires on (machine)

```toml
only = ["torch"]
[driver]
version = "470.57.02"
cuda = "11.4"
```

## Quiet on (machine)

From CUDA 11 on minor releases do not matter: a CUDA 12.8 build runs on the first driver for 12.0.

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

A CUDA release that is not yet on record:

```toml
only = ["torch"]
[target.frameworks.torch.build]
cuda = "99.0"
```

## Fires on (log)

```
RuntimeError: The NVIDIA driver on your system is too old (found version 10010). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx
```

TensorFlow gets this far only if a driver has listed a GPU.

```
  File "C:\\tools\\envs\\faces\\lib\\site-packages\\tensorflow\\python\\client\\session.py", line 676, in __init__
tensorflow.python.framework.errors_impl.InternalError: cudaGetDevice() failed. Status: CUDA driver version is insufficient for CUDA runtime version
```

Code was compiled by a toolkit that is newer than the driver.

```
jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA error: the provided PTX was compiled with an unsupported toolchain.
```

```
docker: Error response from daemon: OCI runtime create failed: nvidia-container-cli: requirement error: unsatisfied condition: cuda>=11.6, please update your driver to a newer version, or use an earlier cuda container: unknown.
```

## Quiet on (log)

There is no driver at all: the CUDA runtime prints the same message.

```
2019-10-08 12:00:01.000002: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:148] kernel driver does not appear to be running on this host (node3): /proc/driver/nvidia/version does not exist
RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version at torch/csrc/cuda/Module.cpp:51
```

With an older driver XLA compiles one kernel at a time, and this works.

```
2023-04-11 09:12:44.120001: W external/org_tensorflow/tensorflow/compiler/xla/stream_executor/gpu/asm_compiler.cc:85] The NVIDIA driver's CUDA version is 11.4 which is older than the ptxas CUDA version 11.8.89. Because the driver is older than the ptxas version, XLA is disabling parallel compilation
Epoch 1/5 loss: 0.9312
```

## Fires on (setup)

The machine is given by `whygpu lint --driver`.

```
==> machine <==
driver = "470.57.02"
gpu = "8.0"
==> requirements.txt <==
torch==2.5.1
```

```
==> machine <==
driver = "470.57.02"
gpu = "8.0"
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
```

## Quiet on (setup)

```
==> machine <==
driver = "535.54.03"
gpu = "8.0"
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN pip install torch==2.5.1
```

Nobody has said which machine it is for.

```
==> requirements.txt <==
torch==2.5.1
```

## Sources

- <https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html>
- <https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.cuda_start_suspects import mismatch_lines, suspected
from whygpu.causes.evidence.framework_builds import cuda_builds, titled
from whygpu.causes.evidence.framework_installs import gpu_build_of
from whygpu.causes.evidence.log_cuda_start import (
    COMPAT,
    INSUFFICIENT,
    compat_of_newer_cuda,
    failed_at,
    lines_of,
    named,
    story_of,
    weight,
)
from whygpu.causes.evidence.log_subjects import framework_title, subject_of
from whygpu.causes.evidence.log_unmet_requirements import unmet_requirement
from whygpu.causes.evidence.setup_requirements import unfit_requirements
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import MACHINE, Confidence, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, Observed, Unknown, need
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.architectures import TEGRA
from whygpu.tables.driver_branches import first_branch_for, is_after, last_branch_for
from whygpu.tables.driver_floors import FAMILIES_FROM, driver_floors
from whygpu.tables.tensorflow_builds import BUILDS, build_of
from whygpu.tables.versions import release_numbers
from whygpu.tables.windows_driver_floors import windows_driver_floors

CAUSE = cause(
    "WG106",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("cuda-init-failed", "gpu-unused", "gpu-index-unchecked", "keras-backend-without-gpu"),
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
                    f"{titled(framework)} is built for CUDA {cuda.value}, which needs {needed.driver}; "
                    f"this machine has {driver.description}"
                ),
                evidence=(driver.evidence, seen(cuda, f"built for CUDA {cuda.value}")),
                remedies=_remedies(machine, framework, needed, driver),
            )


class _Needed(NamedTuple):
    """The driver that a CUDA release needs."""

    cuda: str
    version: str | None
    """The oldest one; None on Windows, which numbers its drivers differently."""

    @property
    def driver(self) -> str:
        if self.version is None:
            return f"a driver for CUDA {self.cuda.partition('.')[0]}"
        return f"driver {self.version} or newer"

    @property
    def release(self) -> str:
        return self.driver if self.version is None else f"{self.version} or newer"

    def is_after(self, branch: int) -> bool:
        """Whether only later driver branches run this CUDA release."""
        if self.version is not None:
            return is_after(self.version, branch)
        first = first_branch_for(release_numbers(self.cuda)[:1])
        return first is not None and first.branch > branch


class _Driver(NamedTuple):
    """The driver that programs use, as far as it can be compared with CUDA releases."""

    linux: str | None
    """Its version; None if it is not a Linux driver, or unknown."""
    cuda: str | None
    """The newest CUDA version it supports."""
    evidence: Evidence

    @property
    def description(self) -> str:
        if self.linux is None:
            return f"a driver whose newest CUDA version is {self.cuda}"
        return f"driver {self.linux}" + (
            f", whose newest CUDA version is {self.cuda}" if self.cuda else ""
        )

    def runs(self, cuda: str) -> bool | None:
        """Whether the driver runs programs for a CUDA release; None if that is not on record."""
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

    def short_of(self, cuda: str) -> _Needed | Gap | None:
        """The driver that is needed; None if this one is new enough."""
        runs = self.runs(cuda)
        if runs:
            return None
        floors = driver_floors(cuda)
        if runs is None:
            known = " or ".join(row.driver for row in floors)
            return Gap(
                f"whether driver {self.linux} is new enough for CUDA {cuda}: "
                + (f"its builds need {known}" if known else "no minimum driver is on record")
            )
        return _Needed(cuda, None if self.linux is None else floors[-1].driver)


def _driver(machine: Snapshot) -> _Driver:
    """Ends the check if there is no driver, or if nothing is known about it."""
    driver = machine.driver
    cuda = driver.cuda.value if isinstance(driver.cuda, Known) else None
    library = driver.cuda_library
    version: Observed[str] = driver.version
    if isinstance(library, Known) and library.value.kind == "compat":
        # NVIDIA's forward-compatibility package works like a newer driver.
        version = library.value.version
    windows = isinstance(machine.system.wsl, Known)
    if windows or not isinstance(version, Known):
        # Drivers for Windows have other numbers, but both report the CUDA version they support.
        if isinstance(driver.cuda, Known):
            return _Driver(None, cuda, seen(driver.cuda, f"supports CUDA up to {cuda}"))
        need(driver.cuda if windows else version)
    known = need(version)
    return _Driver(known, cuda, seen(version, f"driver {known}"))


class _LastDriver(NamedTuple):
    branch: int
    gpu: str
    """The GPU that later branches do not support."""


def _last_driver(machine: Snapshot) -> _LastDriver | None:
    """The last driver branch for all GPUs; None if the newest supports what is known of them."""
    found = []
    for gpu in machine.driver.gpus.value if isinstance(machine.driver.gpus, Known) else ():
        if isinstance(gpu.compute_capability, Known):
            numbers = release_numbers(gpu.compute_capability.value)
            last = last_branch_for((numbers[0], numbers[1])) if len(numbers) == 2 else None
            if last is not None and numbers not in TEGRA:
                found.append(_LastDriver(last.branch, gpu.name))
    return min(found, default=None)


def _remedies(
    machine: Snapshot, framework: Framework, needed: _Needed, driver: _Driver
) -> tuple[Remedy, ...]:
    other = _other_build(framework, driver)
    verb = "Update" if other is None else "Or update"
    last = _last_driver(machine)
    if last is not None and needed.is_after(last.branch):
        update = Remedy(
            f"Keep this driver: branch {last.branch} is the last one that supports {last.gpu}. No "
            f"driver for this GPU runs CUDA {needed.cuda}."
        )
    elif isinstance(machine.system.wsl, Known):
        update = Remedy(f"{verb} the NVIDIA driver in Windows: {needed.driver} is required.")
    elif isinstance(machine.system.container, Known):
        update = Remedy(
            f"{verb} the host's NVIDIA driver to {needed.release}; a container uses the driver of "
            "the host."
        )
    else:
        distribution = machine.system.distribution
        ubuntu = isinstance(distribution, Known) and distribution.value.startswith("Ubuntu")
        limit = f", up to branch {last.branch}, the last one for {last.gpu}" if last else ""
        update = Remedy(
            f"{verb} the NVIDIA driver to {needed.release}{limit}, then restart the machine.",
            command_line("sudo ubuntu-drivers install") if ubuntu else None,
        )
    return (update,) if other is None else (other, update)


def _other_build(framework: Framework, driver: _Driver) -> Remedy | None:
    """A build of the framework that this driver supports, if one exists."""
    if framework.name == "torch":
        return Remedy(
            "Install a PyTorch build for an older CUDA, which this driver supports.",
            gpu_build_of(framework, removes=("torch",)),
        )
    if framework.name == "jax" and driver.runs("12.0"):
        return Remedy(
            "Install JAX for CUDA 12, which this driver supports.",
            gpu_build_of(framework),
        )
    if framework.name == "tensorflow":
        for row in reversed(BUILDS):
            if driver.runs(row.cuda):
                release = ".".join(map(str, row.last))
                return Remedy(
                    f"Install TensorFlow {release}, the newest release built for a CUDA that "
                    f"this driver supports ({row.cuda}), in an environment with an older Python."
                )
    return None


_STATEMENTS = late(
    r"NVIDIA driver on your system is too old(?: \(found version (?P<number>\d{4,5})\))?"
    r"|requirement error: unsatisfied condition: (?P<condition>[a-z]{4,6} ?[<>=]{1,2} ?[\d.]{1,9})"
    r"|unsatisfied condition: (?P<other>cuda ?>= ?[\d.]{1,9})"
    r"|built for NVIDIA Driver Release (?P<release>[\d.]{3,9}) or later, but\s{1,12}version"
    r" (?P<detected>[\d.]{3,20}) was detected|unsupported CUDA version: driver [\d.]{3,6} <"
    r"|PTX was compiled with an unsupported toolchain|PTX_VERSION\b|UnsupportedPtxVersion"
    # The driver's own compiler uses this name for its input.
    r"|application ptx input[^\n]{0,80}Unsupported \.version"
    r"|CALL_REQUIRES_NEWER_DRIVER|Driver missing function: cu\w{3,40}"
    r"|libcuda\.so\.1: undefined symbol: cu[A-Z]\w{2,60}"
    r"|requires? (?:an? )?(?:NVIDIA )?[Dd]river(?: version)? (?:>=|at least|newer than)"
    r"|not supported in the installed CUDA driver|CallRequiresNewerDriver"
    r"|CUDA driver [\d.]{3,8} is not supported, at least|Driver does not support the required nvenc"
    r"|driver version \(?[\d.]{3,20}\)? (?:is )?(?:too old|insufficient|not supported)"
    r"|(?:NVIDIA|CUDA|GPU|[Dd]isplay|[Gg]raphics) drivers? (?:version )?(?:is|are) (?:too old"
    r"|outdated)"
)
_OF_NEWER_CODE = (
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "cudaErrorUnsupportedPtxVersion",
    "cudaErrorCallRequiresNewerDriver",
)
_CONTINUES = late(r"disabling parallel compilation|Relying on driver to perform ptx")
_BUILT_FOR = late(
    r"(?:CUDA used to build PyTorch: |\bcudatoolkit[=-]{1,2}|\bpytorch-cuda[=-]{1,2})"
    r"(?P<cuda>\d{1,2}\.\d)\b"
    r"|\btorch(?:\.__version__)?(?:==|: |[ -]| is |\s{2,40})\d{1,2}\.\d[\d.]{1,6}\+cu(?P<tag>\d{2,3})\b"
)
"""From PyTorch's report about its environment, which also has the driver's version, from its own
version, or from what was installed with conda."""
_START_FAILED = late(
    r"cudaGetDevice\(\) failed\. Status: initialization error"
    r"|initialize CUDA: initialization error|CUDA error 3 at "
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = next((m for m in log.find(_STATEMENTS) if not _CONTINUES.search(m.text)), None)
    suspect = suspected(log, CAUSE.slug)
    compat = lines_of(named(log, COMPAT)) if compat_of_newer_cuda(log) else ()
    unclear = log.first(_START_FAILED)
    unmet = unmet_requirement(log)
    newer = log.status_named(*_OF_NEWER_CODE)
    if statement is not None:
        lines = tuple(m.line for m in log.find(_STATEMENTS)) + lines_of(named(log, INSUFFICIENT))
        yield _in_log(log, (*lines, *compat), statement.groups, "certain")
    elif unmet is not None and unmet.of == "driver" and unmet.too_old:
        yield _in_log(log, (unmet.line,), {}, "likely")
    elif newer:
        yield _in_log(log, lines_of(newer), {}, "certain")
    elif suspect is not None:
        sure = _too_old_by_versions(log)
        confidence: Confidence = "certain" if sure else suspect.confidence
        yield _in_log(log, suspect.lines, {}, confidence, None if sure else suspect.ask)
    elif compat and not mismatch_lines(log):
        yield _in_log(log, compat, {}, "likely")
    elif log.without_gpu() and _too_old_by_versions(log) and (built := _build_shown(log)):
        versions = [v.line for v in log.versions if v.of == "driver"][:1]
        stated = [built]
        without = [report.line for report in log.without_gpu()][:1]
        yield _in_log(log, (*stated, *without, *versions), {}, "certain")
    elif images := log.status_named("CUDA_ERROR_INVALID_IMAGE"):
        ask = (
            "Which CUDA compiled the code, and which one does the driver support (`nvidia-smi`)? "
            "Code of a newer CUDA, or for another GPU, is refused like this."
        )
        yield _in_log(log, lines_of(images), {}, "possible", ask)
    elif unclear is not None and not log.progress:
        ask = "Which driver does `nvidia-smi` show, and which CUDA does the program use?"
        yield _in_log(log, (unclear.line,), {}, "possible", ask)


def _build_shown(log: Log) -> int:
    """The line that shows the CUDA of the build; 0 if there is none."""
    stated = log.first(_BUILT_FOR)
    lines = [stated.line] if stated else []
    lines += [seen.line for seen in log.shown_of("torch-cuda") if seen.value != "None"]
    return lines[0] if lines else 0


def _cuda_wanted(log: Log) -> str | None:
    """The CUDA release that the program was built for, if the log or its version shows it."""
    stated = log.first(_BUILT_FOR)
    if stated is not None:
        tag = stated.groups["tag"]
        return f"{tag[:-1]}.{tag[-1]}" if tag else stated.groups["cuda"]
    of_torch = [seen for seen in log.shown_of("torch-cuda") if seen.value != "None"]
    if of_torch:
        return of_torch[0].value
    version = log.version_of("tensorflow")
    row = build_of(version) if version and log.framework == "tensorflow" else None
    return row.cuda if row else None


def _too_old_by_versions(log: Log) -> bool:
    driver, cuda = log.version_of("driver"), _cuda_wanted(log)
    if driver is None or cuda is None or "." not in driver:
        # Driver Version: 0 means that a program could not get to the driver.
        return False
    floors = (windows_driver_floors if log.platform == "windows" else driver_floors)(cuda)
    return bool(floors) and release_numbers(driver) < release_numbers(floors[0].driver)


def _in_log(
    log: Log,
    lines: tuple[int, ...],
    groups: dict[str, str | None],
    confidence: Confidence,
    ask: str | None = None,
) -> Finding:
    cuda = _cuda_wanted(log)
    return CAUSE.finding(
        subject=subject_of(log),
        message=_log_message(log, groups, cuda),
        evidence=log.evidence(*lines, *story_of(log).wanted),
        remedies=_log_remedies(log, cuda),
        confidence=confidence,
        severity=weight(log, (*lines, *story_of(log).wanted), "error"),
        effect="broken" if failed_at(log, lines) else "cpu",
        ask=ask,
    )


_PTX = late(r"PTX", re.IGNORECASE)


def _log_message(log: Log, groups: dict[str, str | None], cuda: str | None) -> str:
    # A container with the libraries of a newer driver shows their version as the driver's.
    of = "kernel-module" if log.status_named(*COMPAT) else "driver"
    version = groups.get("detected") or log.version_of(of)
    driver = f"the NVIDIA driver {version}" if version else "the NVIDIA driver"
    wants = groups.get("condition") or groups.get("other")
    number = groups.get("number")
    if number:
        driver += f", which supports CUDA up to {int(number) // 1000}.{int(number) % 1000 // 10},"
    if wants:
        return f"{driver} is too old for the container image, which requires {wants}"
    if groups.get("release"):
        return f"{driver} is too old for the container image, which is for {groups['release']}"
    if any(_PTX.search(status.name) for status in log.statuses):
        return f"{driver} is too old for code (PTX) that a newer CUDA toolkit compiled"
    release = f"CUDA {cuda}, which {framework_title(log)} was built for" if cuda else None
    return f"{driver} is too old for {release or f'the CUDA release of {framework_title(log)}'}"


_PLANS = {
    "cupy": command_line("whygpu plan cupy"),
    "jax": command_line("whygpu plan jax"),
    "onnxruntime": command_line("whygpu plan onnxruntime"),
    "tensorflow": command_line("whygpu plan tensorflow"),
    "torch": command_line("whygpu plan torch"),
}


def _log_remedies(log: Log, cuda: str | None) -> tuple[Remedy, ...]:
    table = windows_driver_floors if log.platform == "windows" else driver_floors
    floors = table(cuda) if cuda else ()
    at_least = f" to {floors[-1].driver} or newer" if floors else ""
    inside = story_of(log).in_container
    where = ", on the host, because a container uses the host's driver" if inside else ""
    return (
        Remedy(
            "Use an image, or install a build, for an older CUDA release that this driver supports."
            if inside
            else "Install a build for an older CUDA release that this driver supports.",
            _PLANS.get(log.framework, command_line("whygpu plan torch tensorflow")),
        ),
        Remedy(
            f"Or update the NVIDIA driver{at_least}{where}; then restart. nvidia-smi shows the "
            "newest CUDA that the driver supports.",
            command_line("nvidia-smi"),
        ),
    )


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    yield from unfit_requirements(CAUSE, setup, "driver-too-old")
    image = setup if setup.kind == "image" else setup.image
    base = image.base if image is not None else None
    machine = setup.machine
    if base is None or machine is None or not base.cuda or base.place.file != setup.place.file:
        return
    floors = driver_floors(base.cuda)
    mine = machine.driver
    if not floors or not isinstance(mine, Known):
        return
    if release_numbers(mine.value) < release_numbers(floors[0].driver):
        yield CAUSE.in_setup(
            base.place,
            subject=MACHINE,
            message=f"{base.reference} has CUDA {base.cuda}, which needs driver {floors[0].driver} "
            f"or newer; the machine has {mine.value}",
            fix="Choose an image with an older CUDA, or update the driver of the host.",
            rests_on=("arguments",),
        )
