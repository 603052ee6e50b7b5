"""The machine has an NVIDIA GPU, but no NVIDIA driver that programs can load.

## Why it happens

A CUDA program uses the GPU through libcuda.so.1. Only NVIDIA's driver contains this library: no
framework, no CUDA toolkit and no `nvidia-*` wheel from PyPI does. On a new Linux installation the
card often uses nouveau, which draws the desktop but cannot run CUDA; on servers it often has no
driver at all. A part of the driver is not enough: some packages contain the kernel module or
nvidia-smi without libcuda.

In a container the driver is the host's (see docker-no-gpu-runtime), under WSL it is the one of
Windows (see wsl-no-gpu).

## What it looks like

- TensorFlow: `failed call to cuInit: ... UNKNOWN ERROR (303)`, then everything on the CPU.
- PyTorch: `Found no NVIDIA driver on your system`.
- JAX: `Unable to initialize backend 'cuda'`, or no message and `CpuDevice(id=0)`.
- `nvidia-smi: command not found`.

## Fix

Install the driver package of your distribution, restart, and run `nvidia-smi`. If Secure Boot is
on, the restart asks you to enrol the key that signed the module. Enrol it, or the module is
refused. The driver's own installer (`.run`) works as well, but do not mix the two.

## Fires on (machine)

A laptop whose card uses nouveau.

```toml
[[graphics]]
vendor = "nvidia"
address = "0000:01:00.0"
device_id = "25a2"
kernel_driver = "nouveau"
[driver]
state = "missing"
version = {absent = "NVIDIA driver"}
cuda = {absent = "NVIDIA driver"}
kernel_module = {absent = "/proc/driver/nvidia/version"}
uvm = false
cuda_library = {absent = "libcuda.so.1 in the usual folders"}
nvml_library = {absent = "libnvidia-ml.so.1 in the usual folders"}
device_nodes = {absent = "/dev/nvidia*"}
gpus = {absent = "NVIDIA driver"}
```

The kernel module and nvidia-smi are installed, but not the library that CUDA needs.

```toml
[driver]
cuda_library = {absent = "libcuda.so.1 in the usual folders"}
```

## Quiet on (machine)

The same card in a container: there the driver has to be passed in.

```toml
[driver]
state = "missing"
cuda_library = {absent = "libcuda.so.1 in the usual folders"}
nvml_library = {absent = "libnvidia-ml.so.1 in the usual folders"}
[system.container]
runtime = "docker"
driver_mounts = {absent = "NVIDIA driver files in /proc/self/mountinfo"}
```

## Cannot tell on (machine)

```toml
[driver]
cuda_library = {unknown = "/etc/ld.so.cache: permission denied"}
```

## Fires on (log)

TensorFlow names both missing parts of the driver and continues on the CPU.

```
2021-11-02 08:14:55.120331: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory
2021-11-02 08:14:55.120377: W tensorflow/stream_executor/cuda/cuda_driver.cc:269] failed call to cuInit: UNKNOWN ERROR (303)
2021-11-02 08:14:55.120409: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not appear to be running on this host (lab7): /proc/driver/nvidia/version does not exist
```

```
RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx
```

The CUDA runtime prints this if there is no driver; the missing `nvidia-smi` confirms it.

```
bash: nvidia-smi: command not found
cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version
```

## Quiet on (log)

The same message from a container: there the driver has to be passed in.

```
root@3f2a9c41d07e:/app# python serve.py
ImportError: libcuda.so.1: cannot open shared object file: No such file or directory
```

The driver works and lists one GPU.

```
2022-05-04 10:01:02.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1525] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9650 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 2080 Ti, pci bus id: 0000:01:00.0, compute capability: 7.5
```

## Sources

- <https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/>
- <https://wiki.debian.org/NvidiaGraphicsDrivers>
- <https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/>
- <https://nouveau.freedesktop.org/FeatureMatrix.html>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.cuda_start_suspects import suspected
from whygpu.causes.evidence.driver_state import (
    CONSEQUENCES,
    install_driver,
    nvidia_hardware,
    other_holders,
    place_of,
)
from whygpu.causes.evidence.log_cuda_start import INSUFFICIENT, named, story_of
from whygpu.causes.evidence.log_libraries import NO_CUDART
from whygpu.causes.evidence.log_subjects import framework_title, subject_of
from whygpu.causes.evidence.scheduler_advice import ASK_SLURM, ON_THAT_NODE, SLURM
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, NotApplicable, Unknown, need, need_or
from whygpu.model.remedy import a_number, command_line, shell_script
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG101", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    gpu = nvidia_gpu(machine)
    need(gpu)
    if place_of(machine) != "bare":
        raise NotApplicable("own NVIDIA driver: it is the host's or that of Windows")
    driver = machine.driver
    library = need_or(driver.cuda_library, None)
    if library is not None and library.kind != "toolkit-stub":
        return
    if library is not None and not isinstance(driver.nvml_library, Absent):
        # A driver is installed, but its library is not found first: library-path-conflict.
        return
    yield CAUSE.finding(
        subject=MACHINE,
        message=_message(machine),
        evidence=(
            seen(gpu),
            seen(driver.cuda_library, None if library is None else f"{library.path} is a stub"),
            *_card_drivers(machine),
        ),
        remedies=_remedies(machine),
    )


def _message(machine: Snapshot) -> str:
    driver = machine.driver
    if isinstance(driver.kernel_module, Known):
        return (
            f"the NVIDIA kernel module {driver.kernel_module.value} is loaded, but libcuda.so.1, "
            "the part of the driver that programs load, is not installed"
        )
    if not isinstance(driver.nvml_library, Absent):
        return (
            "this machine has an NVIDIA GPU and a part of NVIDIA's driver, but libcuda.so.1, "
            "which CUDA programs load, is not installed"
        )
    served = other_holders(machine)
    by = f"; the card uses {' and '.join(served)}, which cannot run CUDA"
    return "this machine has an NVIDIA GPU, but NVIDIA's driver is not installed" + (
        by if served else ""
    )


def _card_drivers(machine: Snapshot) -> tuple[Evidence, ...]:
    return tuple(
        seen(device.kernel_driver, f"{device.address} uses {device.kernel_driver.value}")
        for device in nvidia_hardware(machine)
        if isinstance(device.kernel_driver, Known)
    )


def _remedies(machine: Snapshot) -> tuple[Remedy, ...]:
    module = machine.driver.kernel_module
    if isinstance(module, Known):
        branch = module.value.partition(".")[0]
        name = machine.system.distribution
        ubuntu = not isinstance(name, (Absent, Unknown)) and "Ubuntu" in name.value
        return (
            Remedy(
                "Install the driver's compute library, in exactly the version of the loaded "
                f"module ({module.value}).",
                shell_script("sudo apt install libnvidia-compute-", a_number(branch))
                if ubuntu
                else None,
            ),
        )
    remedies = [install_driver(machine)]
    if "vfio-pci" in other_holders(machine):
        remedies.insert(
            0,
            Remedy(
                "The card is reserved for virtual machines (vfio-pci). Run the program in the "
                "virtual machine that owns it, or remove the reservation from the kernel's command "
                "line and restart."
            ),
        )
    if "nouveau" in other_holders(machine):
        remedies.append(
            Remedy(
                "The packages disable nouveau at the next start. If it is still loaded, check that "
                "it is on the deny list.",
                command_line("grep -r nouveau /etc/modprobe.d /usr/lib/modprobe.d"),
            )
        )
    return tuple(remedies)


_OF_ONES_OWN_MACHINE = (
    Remedy(
        "If the machine has an NVIDIA GPU, install NVIDIA's driver, restart, and check whether "
        "nvidia-smi lists the GPU.",
        command_line("nvidia-smi"),
    ),
    Remedy(
        "On Colab, Kaggle and similar services, choose a runtime with a GPU in the settings of the "
        "session."
    ),
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    suspect = suspected(log, CAUSE.slug)
    if suspect is None:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_log_message(log),
        evidence=log.evidence(*suspect.lines),
        remedies=(
            *((ASK_SLURM, ON_THAT_NODE) if log.says(SLURM) else _OF_ONES_OWN_MACHINE),
            Remedy(
                "If it has none, the program can only run on the CPU: choose that in its "
                "options. The messages are then harmless."
            ),
        ),
        confidence=suspect.confidence,
        severity=suspect.severity,
        effect="broken" if suspect.severity == "error" else "cpu",
        ask=suspect.ask,
    )


def _log_message(log: Log) -> str:
    story = story_of(log)
    library = log.library_events("not-found", ("cuda", "nvcuda"))
    if library:
        return (
            f"{framework_title(log)} did not find {library[0].library}, which only NVIDIA's "
            "driver contains"
        )
    if story.no_library and all("nvidia-smi" in log.line(at).text for at in story.no_library):
        return (
            "the program nvidia-smi, a part of NVIDIA's driver, is not installed on the machine of "
            "this log, or not on its PATH"
        )
    if story.no_library and not log.statuses and _only_cudart_is_missed(log, story.no_library):
        return (
            f"{framework_title(log)} found no CUDA on the machine of this log: there is no NVIDIA "
            "driver, or only the CUDA libraries are missing; this message is the same for both"
        )
    if story.no_library:
        return f"{framework_title(log)} found no NVIDIA driver on the machine of this log"
    if story.no_kernel or story.no_node:
        return "NVIDIA's kernel driver does not run on the machine of this log"
    if story.smi_lists_none:
        return (
            "GPUtil runs nvidia-smi and got no GPU from it: no NVIDIA driver runs on the machine "
            "of this log, or it has no NVIDIA GPU"
        )
    if named(log, INSUFFICIENT):
        return "CUDA reports that the driver is too old; it reports the same if there is no driver"
    return (
        "CUDA found no GPU on the machine of this log: no NVIDIA driver runs there, it has no NVIDIA "
        "GPU, or the GPU is hidden from this process"
    )


def _only_cudart_is_missed(log: Log, lines: Sequence[int]) -> bool:
    """TensorFlow's message names drivers, but follows from libcudart, which is no part of one."""
    return all(NO_CUDART.search(log.line(at).text) for at in lines)
