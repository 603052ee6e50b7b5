"""The driver's library libcuda.so.1 is there, but its sister libnvidia-ml.so.1 is not.

## Why it happens

TensorFlow asks NVML (libnvidia-ml.so.1) about the GPUs before it uses any, and takes its absence
for the absence of GPUs. The two libraries come in different packages, and a container gets the
second one only with the driver capability `utility`: NVIDIA_DRIVER_CAPABILITIES=compute alone
leaves it out.

## What it looks like

TensorFlow lists no GPU and says nothing at all, while PyTorch in the same environment works.
There is no nvidia-smi.

## Fix

In a container, ask for the capabilities compute and utility. Elsewhere, install the package with
the driver's monitoring library, of the driver's version.

## Fires on (machine)

```toml
[driver]
state = "missing"
detail = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
nvml_library = {absent = "libnvidia-ml.so.1 in the usual folders"}
gpus = {unknown = "NVML could not tell: libnvidia-ml.so.1 is missing"}
```

## Quiet on (machine)

Without either library there is no driver, which is another matter.

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

## Sources

- <https://github.com/openxla/xla/blob/main/xla/stream_executor/cuda/cuda_executor.cc>
- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html>
- <https://developer.nvidia.com/management-library-nvml>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_driver import on_tegra, place_of, real_library
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Known, NotApplicable, need, need_or
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
        raise NotApplicable("NVML on a Jetson: its builds do without")
    driver = machine.driver
    need(driver.cuda_library)
    library = real_library(driver.cuda_library)
    if library is None:
        raise NotApplicable("libcuda.so.1 of a driver")
    if need_or(driver.nvml_library, None) is not None:
        return
    framework = machine.framework("tensorflow")
    concerned = not isinstance(framework, Absent)
    name = display_name("tensorflow")
    version = f" {framework.value.version}" if isinstance(framework, Known) else ""
    consequence = (
        f"{name}{version} asks it first and then sees no GPU, without a word"
        if concerned
        else "nvidia-smi and programs that watch the GPU do not work"
    )
    yield CAUSE.finding(
        subject="tensorflow" if concerned else MACHINE,
        message=f"{library.value.path} is there, but libnvidia-ml.so.1 (NVML), which belongs to "
        f"the same driver, is not: {consequence}",
        evidence=(
            seen(driver.nvml_library),
            seen(library, f"libcuda.so.1 is {library.value.path}"),
        ),
        remedies=_remedies(machine),
        severity=None if concerned else "warning",
    )


def _remedies(machine: Snapshot) -> tuple[Remedy, ...]:
    if place_of(machine) == "container":
        return (
            Remedy(
                "Start the container with the driver capability utility beside compute.",
                "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...",
            ),
        )
    version = machine.driver.kernel_module
    exact = f" {version.value}" if isinstance(version, Known) else ""
    return (
        Remedy(
            f"Install the driver's monitoring library, of the same version{exact}: it is in "
            "libnvidia-compute-* on Ubuntu, libnvidia-ml1 on Debian, xorg-x11-drv-nvidia-cuda-libs "
            "on Fedora, nvidia-utils on Arch."
        ),
    )
