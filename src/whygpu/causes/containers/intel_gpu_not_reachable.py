"""A build for Intel GPUs (XPU) does not reach the Intel GPU of this machine.

## Why it happens

PyTorch's XPU build reaches an Intel GPU through the kernel driver (`i915` or `xe`), its device file
(`/dev/dri/renderD128` and following) and Intel's driver for Level Zero, `libze_intel_gpu.so.1`. The
wheels bring the rest of oneAPI, but not these three: they belong to the system. The kernel of an
older distribution does not know a new GPU, a user who is not in the group of the file may not open
it, a container has neither the file nor the driver unless it is given both, and most distributions
do not install the driver for Level Zero by default.

## What it looks like

`torch.xpu.is_available()` is False, with the warning `XPU device count is zero!`, and everything
runs on the CPU. `sycl-ls` lists no line that begins with `[level_zero:gpu]`.

## Fix

Install a kernel that knows the GPU, join the group that owns the device file, and install Intel's
driver for Level Zero (on Debian and Ubuntu `libze-intel-gpu1`; older releases from Intel's
repository call it `intel-level-zero-gpu`).

This follows Intel's documentation and reports of users. It was not measured.

## Fires on (machine)

A user who is not in the group `render`.

```toml
start = "intel"
[graphics."0000:03:00.0"]
kernel_driver = "i915"
[intel]
device_nodes = [{path = "/dev/dri/renderD128", mode = "crw-rw----", group = "render", usable = false}]
```

Without the driver for Level Zero.

```toml
start = "intel"
[intel]
level_zero = {absent = "libze_intel_gpu.so.1 in LD_LIBRARY_PATH, the loader's cache and the default folders"}
```

The kernel does not know this GPU.

```toml
start = "intel"
[graphics."0000:03:00.0"]
device_id = "e20b"
kernel_driver = {absent = "/sys/bus/pci/devices/0000:03:00.0/driver"}
[intel]
device_nodes = {absent = "a render node below /sys/bus/pci/devices/*/drm"}
```

A container without the device file.

```toml
start = "intel"
[system.container]
runtime = "docker"
driver_mounts = {absent = "/proc/self/mountinfo"}
[graphics."0000:03:00.0"]
kernel_driver = "i915"
[intel]
device_nodes = {absent = "/dev/dri/renderD*"}
```

## Quiet on (machine)

```toml
start = "intel"
```

## Cannot tell on (machine)

```toml
start = "intel"
[graphics."0000:03:00.0"]
kernel_driver = "i915"
[intel]
device_nodes = {unknown = "/sys/bus/pci/devices/0000:03:00.0/drm: permission denied"}
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html>
- <https://dgpu-docs.intel.com/driver/client/overview.html>
- <https://github.com/intel/intel-extension-for-pytorch/issues/651>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.driver_state import uses_apt
from whygpu.causes.evidence.framework_builds import builds_for
from whygpu.causes.evidence.render_nodes import access_remedies, unusable
from whygpu.model.cause import cause
from whygpu.model.derived import devices_of, display_name
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.intel_driver import IntelDriver
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG807", __name__, __doc__, severity="error", effect="cpu", explains=("gpu-unused",))


class _Fault(NamedTuple):
    what: str
    evidence: Evidence
    remedies: tuple[Remedy, ...]


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    frameworks = builds_for(machine, "xpu", "a framework that is built for Intel GPUs (XPU)")
    driver = need(machine.intel)
    for what, fact in (
        ("who may use the Intel GPU", driver.device_nodes),
        ("whether Intel's driver for Level Zero is installed", driver.level_zero),
    ):
        if isinstance(fact, Unknown):
            yield Gap(f"{what}: {fact.reason}")
    fault = (
        _without_kernel_driver(machine) or _closed(machine, driver) or _level_zero(machine, driver)
    )
    if fault is None:
        return
    for framework in frameworks:
        yield CAUSE.finding(
            subject=framework.name,
            message=f"{fault.what}, so {display_name(framework.name)} {framework.version} cannot "
            "use the Intel GPU",
            evidence=(fault.evidence,),
            remedies=fault.remedies,
            confidence="likely",
        )


def _without_kernel_driver(machine: Snapshot) -> _Fault | None:
    """If no Intel GPU has a driver. One that has is enough."""
    devices = devices_of(machine, "intel")
    drivers = [device.kernel_driver for device in devices]
    missing = [driver for driver in drivers if isinstance(driver, Absent)]
    if not missing or len(missing) < len(drivers):
        return None
    return _Fault(
        f"no kernel driver has taken the Intel GPU at {devices[0].address}",
        seen(missing[0]),
        (
            Remedy("Install a newer kernel: each one knows the GPUs of its time and before."),
            Remedy("Read in the kernel log what the drivers say.", command_line("sudo dmesg")),
        ),
    )


def _closed(machine: Snapshot, driver: IntelDriver) -> _Fault | None:
    found = driver.device_nodes
    if isinstance(found, Unknown):
        return None
    nodes = found.value if isinstance(found, Known) else ()
    what = unusable(nodes)
    if what is None and not nodes and isinstance(machine.system.container, Known):
        what = "this container has no /dev/dri/renderD*"
    if what is None:
        return None
    return _Fault(what, seen(found, what), tuple(access_remedies(machine, nodes, "intel")))


def _level_zero(machine: Snapshot, driver: IntelDriver) -> _Fault | None:
    library = driver.level_zero
    if not isinstance(library, Absent):
        return None
    return _Fault(
        "Intel's driver for Level Zero (libze_intel_gpu.so.1) is not installed",
        seen(library),
        (
            Remedy(
                "Install the driver for Level Zero. Older releases of Debian and Ubuntu get it from "
                "Intel's repository.",
                command_line("sudo apt-get install libze-intel-gpu1")
                if uses_apt(machine)
                else None,
            ),
        ),
    )
