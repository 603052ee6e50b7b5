"""The kernel driver for AMD GPUs does not offer the GPU of this machine for computing.

## Why it happens

ROCm reaches an AMD GPU through the kernel driver `amdgpu` and its compute part, KFD, which creates
`/dev/kfd`. The driver is missing if it is not installed or on a block list, or if Secure Boot
refuses a module that AMD's installer has built. Another driver may have taken the GPU: `radeon` an
old one, `vfio-pci` one that is passed to a virtual machine.

## What it looks like

`rocminfo` says `ROCk module is NOT loaded`. The framework lists no GPU and computes on the CPU.

## Fix

Load the driver: `sudo modprobe amdgpu`. If that fails, the kernel log says why. WSL has no such
driver; AMD's guide for WSL describes what it uses instead.

This follows AMD's documentation. It was not measured.

## Fires on (machine)

No driver has taken the GPU.

```toml
start = "amd"
[graphics."0000:03:00.0"]
kernel_driver = {absent = "/sys/bus/pci/devices/0000:03:00.0/driver"}
[amd]
gpus = {absent = "/sys/class/kfd/kfd/topology/nodes"}
device_nodes = {absent = "/dev/kfd, /dev/dri/renderD*"}
```

It is reserved for a virtual machine.

```toml
start = "amd"
[graphics."0000:03:00.0"]
kernel_driver = "vfio-pci"
[amd]
gpus = {absent = "/sys/class/kfd/kfd/topology/nodes"}
device_nodes = {absent = "/dev/kfd, /dev/dri/renderD*"}
```

The driver is loaded, but its compute part does not know the GPU.

```toml
start = "amd"
[amd]
gpus = {absent = "a GPU in /sys/class/kfd/kfd/topology/nodes"}
```

## Quiet on (machine)

```toml
start = "amd"
```

## Cannot tell on (machine)

```toml
start = "amd"
[graphics."0000:03:00.0"]
kernel_driver = {unknown = "/sys/bus/pci/devices/0000:03:00.0/driver: permission denied"}
[amd]
gpus = {unknown = "/sys/class/kfd/kfd/topology/nodes/1/properties: Operation not permitted"}
```

## Sources

- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/prerequisites.html>
- <https://docs.kernel.org/gpu/amdgpu/index.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.amd_gpus import amd_driver, rocm_frameworks
from whygpu.model.cause import cause
from whygpu.model.derived import devices_of, display_name
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Known, NotApplicable, Unknown
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG806",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "kfd-not-permitted", "rocm-target-missing"),
)

_DRIVER = "amdgpu"
_LOAD = Remedy("Load the driver.", command_line("sudo modprobe amdgpu"))
_READ = Remedy("Read in the kernel log what the driver says.", command_line("sudo dmesg"))
_PASSED_ON = "vfio-pci"
_GIVE_BACK = Remedy(
    "If no virtual machine needs it, remove its id from the options of vfio-pci (kernel command line "
    "and /etc/modprobe.d), and restart the machine."
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    frameworks = rocm_frameworks(machine)
    if not isinstance(machine.system.wsl, Absent):
        raise NotApplicable("this driver in WSL, which reaches the GPU without it")
    gpus = amd_driver(machine).gpus
    if isinstance(gpus, Known):
        return
    if isinstance(gpus, Unknown):
        yield Gap(f"whether the kernel offers the AMD GPU for computing: {gpus.reason}")
        return
    reason, evidence, remedies = _reason(machine)
    for framework in frameworks:
        yield CAUSE.finding(
            subject=framework.name,
            message=f"{reason}, so {display_name(framework.name)} {framework.version} cannot use it",
            evidence=(*evidence, seen(gpus)),
            remedies=remedies,
            confidence="likely",
        )


def _reason(machine: Snapshot) -> tuple[str, tuple[Evidence, ...], tuple[Remedy, ...]]:
    for device in devices_of(machine, "amd"):
        driver = device.kernel_driver
        if isinstance(driver, Known) and driver.value == _PASSED_ON:
            text = (
                f"the AMD GPU at {device.address} is reserved for virtual machines ({_PASSED_ON})"
            )
            return text, (seen(driver),), (_GIVE_BACK,)
        if isinstance(driver, Known) and driver.value != _DRIVER:
            text = f"the AMD GPU at {device.address} is taken by the kernel driver {driver.value}"
            return text, (seen(driver),), (_READ,)
        if isinstance(driver, Absent):
            text = f"no kernel driver has taken the AMD GPU at {device.address}"
            in_container = isinstance(machine.system.container, Known)
            load = _LOAD._replace(text="Load the driver on the host.") if in_container else _LOAD
            return text, (seen(driver),), (load, _READ)
    return "the kernel driver does not offer the AMD GPU for computing", (), (_READ,)
