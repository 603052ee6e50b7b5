"""The driver's library libcuda.so.1 is installed, but libnvidia-ml.so.1 (NVML) is not.

## Why it happens

TensorFlow asks NVML (libnvidia-ml.so.1) for the GPUs before it uses any. If the library is missing,
it assumes that there are none. The two libraries are in different packages. A container gets NVML
only with the driver capability `utility`, and not with NVIDIA_DRIVER_CAPABILITIES=compute alone.

## What it looks like

TensorFlow lists no GPU and prints nothing, while PyTorch in the same environment works. nvidia-smi
is missing.

## Fix

In a container, request the capabilities compute and utility. Elsewhere, install the package with
the driver's monitoring library, in the driver's version.

## Fires on (machine)

```toml
[driver]
state = "missing"
detail = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
nvml_library = {absent = "libnvidia-ml.so.1 in the usual folders"}
gpus = {unknown = "NVML could not tell: libnvidia-ml.so.1 is missing"}
```

## Quiet on (machine)

If both libraries are missing, there is no driver, and another cause reports it.

```toml
[driver]
state = "missing"
cuda_library = {absent = "libcuda.so.1 in the usual folders"}
nvml_library = {absent = "libnvidia-ml.so.1 in the usual folders"}
```

## Cannot tell on (machine)

```toml
[driver]
nvml_library = {unknown = "/etc/ld.so.cache: permission denied"}
```

## Fires on (log)

TensorFlow prints this with TF_CPP_VMODULE=dso_loader=1.

```
2025-02-01 10:00:00.000001: I external/local_xla/xla/tsl/platform/default/dso_loader.cc:59] Successfully opened dynamic library libcuda.so.1
2025-02-01 10:00:00.000002: W external/local_xla/xla/tsl/platform/default/dso_loader.cc:144] Could not load dynamic library 'libnvidia-ml.so.1'; dlerror: libnvidia-ml.so.1: cannot open shared object file: No such file or directory
```

## Quiet on (log)

Without a driver both libraries are missing.

```
pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found
```

## Sources

- <https://github.com/openxla/xla/blob/main/xla/stream_executor/cuda/cuda_executor.cc>
- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html>
- <https://developer.nvidia.com/management-library-nvml>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.container_advice import runtime_in_log, runtime_of
from whygpu.causes.evidence.driver_state import on_tegra, place_of, real_library
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, NotApplicable, need, need_or
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG110",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "keras-backend-without-gpu"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    if on_tegra(machine):
        raise NotApplicable("NVML on a Jetson: its builds work without it")
    driver = machine.driver
    need(driver.cuda_library)
    library = real_library(driver.cuda_library)
    if library is None:
        raise NotApplicable("libcuda.so.1 of a driver")
    if need_or(driver.nvml_library, None) is not None:
        return
    framework = machine.framework("tensorflow")
    affected = not isinstance(framework, Absent)
    name = display_name("tensorflow")
    version = f" {framework.value.version}" if isinstance(framework, Known) else ""
    consequence = (
        f"{name}{version} uses it first and then sees no GPU, without a message"
        if affected
        else "nvidia-smi and programs that monitor the GPU do not work"
    )
    yield CAUSE.finding(
        subject="tensorflow" if affected else MACHINE,
        message=f"{library.value.path} is installed, but libnvidia-ml.so.1 (NVML) of the same "
        f"driver is not: {consequence}",
        evidence=(
            seen(driver.nvml_library),
            seen(library, f"libcuda.so.1 is {library.value.path}"),
        ),
        remedies=_remedies(machine),
        severity=None if affected else "warning",
    )


_WITH_UTILITY = command_line(
    "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."
)


def _remedies(machine: Snapshot) -> tuple[Remedy, ...]:
    if place_of(machine) == "container":
        return (
            Remedy(
                "Start the container with the driver capabilities compute and utility.",
                _WITH_UTILITY if runtime_of(machine) == "docker" else None,
            ),
        )
    version = machine.driver.kernel_module
    exact = f" {version.value}" if isinstance(version, Known) else ""
    return (
        Remedy(
            f"Install the driver's monitoring library, in the same version{exact}: it is in "
            "libnvidia-compute-* on Ubuntu, libnvidia-ml1 on Debian, xorg-x11-drv-nvidia-cuda-libs "
            "on Fedora, nvidia-utils on Arch."
        ),
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    missing = log.library_events("not-found", ("nvidia-ml",))
    opened = log.library_events("opened", ("cuda",))
    if not missing or not opened:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message="libcuda.so.1 is installed, but libnvidia-ml.so.1 (NVML) of the same driver is "
        "not; TensorFlow uses it first and then sees no GPU",
        evidence=log.evidence(missing[0].line, opened[0].line),
        remedies=(
            Remedy(
                "In a container, request the driver capabilities compute and utility.",
                _WITH_UTILITY if runtime_in_log(log) == "docker" else None,
            ),
            Remedy("Elsewhere, install the driver's monitoring library, in the driver's version."),
        ),
    )
