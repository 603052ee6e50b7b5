"""Under WSL, the GPU of the Windows machine is not reached.

## Why it happens

In WSL 2 the driver is the one of Windows: it shows as /dev/dxg, and its libcuda.so.1 lies in
/usr/lib/wsl/lib. Installing a Linux driver inside WSL (`apt install nvidia-driver-...`, or the
package `cuda`, which brings one) puts another libcuda in front of it, which finds no kernel module
and no GPU. Without /dev/dxg, the Windows side does not offer its GPU at all. WSL 1 has no GPU.

## What it looks like

- `CUDA_ERROR_NO_DEVICE`, `UNKNOWN ERROR (303)` or code 500 from cuInit, on a machine whose GPU
  works in Windows.
- `nvidia-smi`: "couldn't communicate with the NVIDIA driver".

## Fix

Remove every Linux driver package inside WSL, install the driver in Windows only, and keep WSL up
to date.

## Fires on (machine)

apt's driver inside WSL 2.

```toml
start = "no-gpu"
[system]
wsl = 2
[driver]
state = "not-loaded"
detail = "Driver Not Loaded"
device_nodes = [{path = "/dev/dxg", mode = "crw-rw-rw-", group = "root", usable = true}]
[driver.cuda_library]
path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
version = "550.54.14"
kind = "driver"
```

WSL 2 that Windows shows no GPU.

```toml
start = "no-gpu"
[system]
wsl = 2
[driver]
device_nodes = {absent = "/dev/nvidia*, /dev/dxg"}
```

WSL 1.

```toml
start = "no-gpu"
[system]
wsl = 1
```

## Quiet on (machine)

```toml
graphics = {absent = "graphics device in /sys/bus/pci/devices"}
[system]
wsl = 2
[driver]
kernel_module = {absent = "WSL: the kernel's part of the driver runs in Windows"}
uvm = false
device_nodes = [{path = "/dev/dxg", mode = "crw-rw-rw-", group = "root", usable = true}]
[driver.cuda_library]
path = "/usr/lib/wsl/lib/libcuda.so.1"
kind = "wsl"
```

## Cannot tell on (machine)

Windows offers graphics and no NVIDIA driver: from here it does not show whether it has a GPU of
NVIDIA's.

```toml
start = "no-gpu"
[system]
wsl = 2
[driver]
device_nodes = [{path = "/dev/dxg", mode = "crw-rw-rw-", group = "root", usable = true}]
```

## Sources

- <https://docs.nvidia.com/cuda/wsl-user-guide>
- <https://learn.microsoft.com/windows/ai/directml/gpu-cuda-in-wsl>
- <https://learn.microsoft.com/windows/wsl/wsl-config>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_driver import (
    CONSEQUENCES,
    WSL_NODE,
    cu_init,
    cuda_starts,
    device_nodes,
    probed,
)
from whygpu.model.cause import cause
from whygpu.model.driver import DriverLibrary
from whygpu.model.finding import MACHINE, Confidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Known, NotApplicable, need
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG802", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_WINDOWS_DRIVER = Remedy(
    "Install NVIDIA's current driver in Windows, and no driver inside WSL. Then, in PowerShell:",
    "wsl --update; wsl --shutdown",
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    version = need(machine.system.wsl)
    if not isinstance(machine.system.container, Absent):
        raise NotApplicable("WSL system of its own: this is a container in one")
    if version == 1:
        yield _first_generation(machine)
        return
    if cuda_starts(machine):
        return
    if all(node.path != WSL_NODE for node in device_nodes(machine)):
        yield _without_node(machine)
        return
    library = machine.driver.cuda_library
    if isinstance(library, Known) and library.value.kind == "driver":
        yield _linux_driver(machine, library)
    elif isinstance(library, Absent):
        yield Gap(
            "whether Windows has an NVIDIA GPU: it offers graphics to WSL (/dev/dxg), but no "
            "NVIDIA driver; if it has one, install NVIDIA's driver in Windows and run wsl --update"
        )
    else:
        need(library)


def _first_generation(machine: Snapshot) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message="this is WSL 1, which gives Linux programs no access to a GPU; WSL 2 does",
        evidence=(seen(machine.system.wsl, f"kernel {machine.system.kernel}"),),
        remedies=(
            Remedy(
                "Turn this distribution into WSL 2, in PowerShell; wsl -l -v lists its name.",
                "wsl --set-version Ubuntu 2",
            ),
        ),
        confidence="likely",
    )


def _without_node(machine: Snapshot) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message="Windows offers this WSL 2 no GPU: there is no /dev/dxg, through which Linux "
        "programs reach it",
        evidence=(seen(machine.driver.device_nodes, "no /dev/dxg"),),
        remedies=(
            _WINDOWS_DRIVER,
            Remedy(
                "See that %UserProfile%\\.wslconfig does not have gpuSupport=false, and that "
                "Windows is Windows 11 or 10 21H2."
            ),
        ),
        confidence="likely",
    )


def _linux_driver(machine: Snapshot, library: Known[DriverLibrary]) -> Finding:
    version = library.value.version
    what = f" (driver {version.value})" if isinstance(version, Known) else ""
    answer = cu_init(machine)
    state = machine.driver.state
    refused = isinstance(answer, Known) or (
        isinstance(state, Known) and state.value in ("not-loaded", "failed", "mismatched")
    )
    confidence: Confidence = "certain" if refused else "likely"
    return CAUSE.finding(
        subject=MACHINE,
        message=f"programs find {library.value.path}{what}, which belongs to a Linux driver; "
        "under WSL the one in /usr/lib/wsl/lib has to be found, which speaks with Windows",
        evidence=(
            seen(library, f"libcuda.so.1 is {library.value.path}"),
            *((probed(answer),) if isinstance(answer, Known) else ()),
            seen(state, machine.driver.detail or None),
        ),
        remedies=(
            Remedy(
                "Remove the Linux driver from WSL (CUDA toolkits may stay), then restart WSL.",
                "sudo apt-get purge -y 'nvidia-driver-*' 'libnvidia-*' 'nvidia-dkms-*' && "
                "sudo ldconfig",
            ),
            Remedy(
                "Or put the right folder first.",
                'export LD_LIBRARY_PATH="/usr/lib/wsl/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
            ),
            _WINDOWS_DRIVER,
        ),
        confidence=confidence,
    )
