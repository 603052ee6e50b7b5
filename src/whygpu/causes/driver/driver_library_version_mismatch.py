"""The driver's libraries and the loaded kernel module have different versions.

## Why it happens

NVIDIA's driver consists of a kernel module and libraries such as libcuda.so.1. Both must have
exactly the same version. An update replaces both on disk, but the old module stays in the running
kernel until the machine restarts. Automatic updates do this overnight. If a restart does not help,
two drivers are installed (a package and a `.run` file), or the initial ramdisk contains an old
module.

NVIDIA's forward-compatibility package (a folder `compat` in a CUDA toolkit) contains a libcuda that
is newer than the module on purpose. After the driver has been updated beyond it, it is only an old
copy that is found first.

For a driver library that is part of a container image, see docker-no-gpu-runtime.

## What it looks like

- `Failed to initialize NVML: Driver/library version mismatch`.
- `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH`, code 803: "system has unsupported display driver / cuda
  driver combination".
- TensorFlow registers no GPU. PyTorch reports that CUDA is not available.

## Fix

Restart the machine. If that has to wait, stop all programs that use the GPU (also the desktop),
unload the old module and load the new one.

## Fires on (machine)

```toml
[driver]
state = "mismatched"
detail = "Driver/library version mismatch"
version = {unknown = "library 580.82.07 and kernel module 580.65.06 differ"}
cuda = {unknown = "NVML could not tell: Driver/library version mismatch"}
gpus = {unknown = "NVML could not tell: Driver/library version mismatch"}
[driver.nvml_library]
path = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
version = "580.82.07"
```

NVML matches the module, but another libcuda is found.

```toml
[driver.cuda_library]
path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
version = "550.54.14"
```

The compatibility package is older than the driver.

```toml
[driver.cuda_library]
path = "/usr/local/cuda/compat/libcuda.so.1"
version = "550.54.15"
kind = "compat"
```

## Quiet on (machine)

NVIDIA's forward-compatibility package is newer than the module on purpose.

```toml
[driver.cuda_library]
path = "/usr/local/cuda/compat/libcuda.so.1"
version = "590.44.01"
kind = "compat"
```

## Cannot tell on (machine)

```toml
[driver]
state = {unknown = "NVML could not be asked: no pynvml"}
kernel_module = {unknown = "/sys is not mounted"}
```

## Fires on (log)

```
$ nvidia-smi
Failed to initialize NVML: Driver/library version mismatch
NVML library version: 535.161
```

```
E tensorflow/stream_executor/cuda/cuda_driver.cc:491] failed call to cuInit: CUDA_ERROR_NO_DEVICE
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:185] libcuda reported version is: 361.42.0
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:189] kernel reported version is: 367.27.0
E tensorflow/stream_executor/cuda/cuda_diagnostics.cc:296] kernel version 367.27.0 does not match DSO version 361.42.0 -- cannot find working devices in this configuration
```

An update without a restart, reported by PyTorch.

```
UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination
False
```

## Quiet on (log)

```
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:189] libcuda reported version is: 455.45.1
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:193] kernel reported version is: 455.45.1
I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:300] kernel version seems to match DSO: 455.45.1
E tensorflow/stream_executor/cuda/cuda_driver.cc:328] failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error
```

## Sources

- <https://docs.nvidia.com/deploy/cuda-compatibility/>
- <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html>
- <https://github.com/NVIDIA/nvidia-container-toolkit/issues/394>
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from whygpu.causes.evidence.cuda_start_suspects import mismatch_lines
from whygpu.causes.evidence.driver_state import (
    CONSEQUENCES,
    cu_init,
    differing_libraries,
    from_image,
    numbers,
    place_of,
    probed,
)
from whygpu.causes.evidence.library_search import search_without
from whygpu.causes.evidence.log_cuda_start import (
    COMPAT,
    compat_of_newer_cuda,
    failed_at,
    lines_of,
    named,
    story_of,
    weight,
)
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import DriverLibrary
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known, NotApplicable, need
from whygpu.model.remedy import Steps, a_path, command_line, shell_script
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG102", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_DRIVER_MISMATCH = 803


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    if place_of(machine) == "wsl":
        raise NotApplicable("NVIDIA kernel module under WSL")
    driver = machine.driver
    outdated = _outdated_compat(machine)
    if outdated is not None:
        yield _compat_finding(machine, outdated)
        return
    differing = differing_libraries(machine)
    libraries = differing or _driver_libraries(machine)
    if any(from_image(machine, library.value) for library in libraries):
        raise NotApplicable("driver library of the host: this one belongs to the image")
    refused = isinstance(driver.state, Known) and driver.state.value == "mismatched"
    if not differing and not refused:
        if not isinstance(driver.kernel_module, Known):
            need(driver.state)
        return
    yield CAUSE.finding(
        subject=MACHINE,
        message=_message(machine, differing),
        evidence=_evidence(machine, differing),
        remedies=_remedies(machine),
    )


def _outdated_compat(machine: Snapshot) -> Known[DriverLibrary] | None:
    """The compatibility package's libcuda, if the loaded module is newer."""
    library, module = machine.driver.cuda_library, machine.driver.kernel_module
    if not isinstance(library, Known) or library.value.kind != "compat":
        return None
    version = library.value.version
    if not isinstance(version, Known) or not isinstance(module, Known):
        return None
    return library if numbers(version.value) < numbers(module.value) else None


def _compat_finding(machine: Snapshot, library: Known[DriverLibrary]) -> Finding:
    answer = cu_init(machine)
    refused = isinstance(answer, Known) and answer.value.code == _DRIVER_MISMATCH
    folder = posixpath.dirname(library.value.path)
    without = search_without(machine, folder)
    remedy = (
        Remedy("Remove that folder from LD_LIBRARY_PATH; the driver does not need it.", without)
        if without
        else Remedy(
            "Prevent the loader from finding it there: remove the package, or the entry that names "
            "the folder.",
            shell_script("grep -rn compat /etc/ld.so.conf.d/; ls -l ", a_path(folder)),
        )
    )
    return CAUSE.finding(
        subject=MACHINE,
        message=(
            f"libcuda.so.1 is found in NVIDIA's compatibility package in {folder}, for driver "
            f"{_version(library)}; the loaded kernel module "
            f"{need(machine.driver.kernel_module)} is newer, and the two do not match"
        ),
        evidence=_evidence(machine, (library,)),
        remedies=(remedy,),
        confidence="certain" if refused else "likely",
    )


def _driver_libraries(machine: Snapshot) -> tuple[Known[DriverLibrary], ...]:
    return tuple(
        library
        for library in (machine.driver.cuda_library, machine.driver.nvml_library)
        if isinstance(library, Known) and library.value.kind == "driver"
    )


def _message(machine: Snapshot, differing: tuple[Known[DriverLibrary], ...]) -> str:
    module = machine.driver.kernel_module
    if not differing or not isinstance(module, Known):
        return (
            "the NVIDIA driver's libraries and its loaded kernel module have different "
            f"versions: {machine.driver.detail or 'the driver refuses to work'}"
        )
    found = " and ".join(
        f"{library.value.path} belongs to driver {_version(library)}" for library in differing
    )
    return (
        f"the loaded NVIDIA kernel module is version {module.value}, but {found}; they must "
        "be the same"
    )


def _version(library: Known[DriverLibrary]) -> str:
    version = library.value.version
    return version.value if isinstance(version, Known) else "another version"


def _evidence(
    machine: Snapshot, differing: tuple[Known[DriverLibrary], ...]
) -> tuple[Evidence, ...]:
    driver = machine.driver
    module = driver.kernel_module
    evidence = [
        seen(module, f"kernel module {module.value}" if isinstance(module, Known) else None)
    ]
    evidence += [seen(library, f"driver {_version(library)}") for library in differing]
    if isinstance(driver.state, Known) and driver.state.value == "mismatched":
        evidence.append(seen(driver.state, driver.detail or "mismatched"))
    answer = cu_init(machine)
    if isinstance(answer, Known) and answer.value.code == _DRIVER_MISMATCH:
        evidence.append(probed(answer))
    return tuple(evidence)


def _remedies(machine: Snapshot) -> tuple[Remedy, ...]:
    if place_of(machine) == "container":
        return (
            Remedy(
                "The host's driver was updated and its old kernel module is still loaded: restart "
                "the host, then start this container again."
            ),
        )
    return (
        Remedy(
            "Restart the machine, so that it loads the new module.", command_line("sudo reboot")
        ),
        Remedy(
            "Without a restart: stop the desktop and all programs that use the GPU, then reload "
            "the module.",
            Steps(
                (
                    command_line("sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia"),
                    command_line("sudo modprobe nvidia_uvm"),
                )
            ),
        ),
        Remedy(
            "If the error remains after a restart, two drivers are installed: remove one of them "
            "(nvidia-uninstall removes a driver that a .run file installed) and rebuild the "
            "initial ramdisk.",
        ),
    )


_TWO_VERSIONS = late(
    r"kernel version (?P<kernel>[\d.]{3,20}) does not match DSO version (?P<library>[\d.]{2,19}\d)"
    r"|client has the version (?P<client>[\d.]{3,20}), but\s[^\n]{0,40}"
    r"kernel module has the version"
    r" (?P<module>[\d.]{2,19}\d)"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    stated = mismatch_lines(log)
    compat = lines_of(named(log, COMPAT))
    apart = log.first(_TWO_VERSIONS)
    if compat and not stated and compat_of_newer_cuda(log):
        # Here the CUDA in use is newer than the driver: driver-too-old-for-cuda.
        return
    if not stated and not compat and apart is None:
        return
    lines = (*stated, *compat, *((apart.line,) if apart else ()), *story_of(log).wanted)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_log_message(apart),
        evidence=log.evidence(*lines),
        remedies=_log_remedies(log, compat=bool(compat) and not stated),
        confidence="certain" if stated or apart else "likely",
        severity=weight(log, lines, "error"),
        effect="broken" if failed_at(log, lines) else "cpu",
        ask=None
        if stated or apart
        else "Does /proc/driver/nvidia/version show the same version as `nvidia-smi`? If not, "
        "restart. If it does, a 'compat' folder with another libcuda is on the library path.",
    )


def _log_message(apart: Match | None) -> str:
    if apart is None:
        return (
            "the loaded libcuda and the running kernel module belong to different versions of the "
            "NVIDIA driver, as after an update without a restart"
        )
    kernel = apart.groups["kernel"] or apart.groups["module"]
    library = apart.groups["library"] or apart.groups["client"]
    return (
        f"the loaded NVIDIA kernel module is version {kernel}, but the driver's library is "
        f"version {library}; they must be the same"
    )


_OF_IMAGE = Remedy(
    "If it runs in a container, do not restart anything: the libraries of the image are for a newer "
    "driver than the host's. Use an image for an older CUDA, or update the driver of the host."
)


def _log_remedies(log: Log, *, compat: bool) -> tuple[Remedy, ...]:
    remedies = (
        *((_OF_IMAGE,) if compat else ()),
        Remedy(
            "Restart the machine, so that it loads the new module.", command_line("sudo reboot")
        ),
        Remedy(
            "If the error remains after a restart, two drivers are installed, or the initial "
            "ramdisk contains an old module: remove one driver and rebuild the ramdisk.",
            shell_script("cat /proc/driver/nvidia/version; ldconfig -p | grep libcuda"),
        ),
    )
    if story_of(log).place == "container":
        return (
            Remedy(
                "If nvidia-smi works on the host, the image contains its own driver library: "
                "remove libcuda and libnvidia-ml from the image, and start it with --gpus all."
            ),
            *remedies,
        )
    return remedies
