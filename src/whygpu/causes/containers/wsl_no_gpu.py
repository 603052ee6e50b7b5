"""Under WSL, programs cannot use the GPU of the Windows machine.

## Why it happens

In WSL 2 the driver is the one of Windows: its device node is /dev/dxg, and its libcuda.so.1 is in
/usr/lib/wsl/lib. A Linux driver inside WSL (`apt install nvidia-driver-...`, or the package `cuda`,
which contains one) puts another libcuda before it, which finds no kernel module and no GPU. Without
/dev/dxg, Windows does not offer its GPU at all. WSL 1 has no GPU.

## What it looks like

- `CUDA_ERROR_NO_DEVICE`, `UNKNOWN ERROR (303)` or code 500 from cuInit, on a machine whose GPU
  works in Windows.
- `nvidia-smi`: "couldn't communicate with the NVIDIA driver".

## Fix

Remove every Linux driver package from WSL, install the driver only in Windows, and keep WSL up to
date.

## Fires on (machine)

A driver from apt inside WSL 2.

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

Windows shows WSL 2 no GPU.

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

A user who may not open the device node.

```toml
start = "no-gpu"
[system]
wsl = 2
[driver]
device_nodes = [{path = "/dev/dxg", mode = "crw-rw----", group = "root", usable = false}]
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

Windows offers graphics but no NVIDIA driver: WSL cannot see whether Windows has an NVIDIA GPU.

```toml
start = "no-gpu"
[system]
wsl = 2
[driver]
device_nodes = [{path = "/dev/dxg", mode = "crw-rw-rw-", group = "root", usable = true}]
```

A build for AMD GPUs.

```toml
start = "no-gpu"
only = ["torch"]
[system]
wsl = 2
[driver]
device_nodes = [{path = "/dev/dxg", mode = "crw-rw-rw-", group = "root", usable = true}]
[target.frameworks.torch.build]
kind = "rocm"
```

## Fires on (log)

```
(torch) user@desk:/mnt/c/work$ python train.py
Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file: No such file or directory
```

```
Linux desk 5.15.90.1-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux
2022-10-02 18:20:31.440002: E tensorflow/compiler/xla/stream_executor/cuda/cuda_driver.cc:267] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected
```

```
$ nvidia-smi
Failed to initialize NVML: GPU access blocked by the operating system
Failed to properly shut down NVML: GPU access blocked by the operating system
```

## Quiet on (log)

WSL with a GPU that works.

```
2023-01-05 12:00:00.000001: I tensorflow/compiler/xla/stream_executor/cuda/cuda_gpu_executor.cc:966] could not open file to read NUMA node: /sys/bus/pci/devices/0000:01:00.0/numa_node
2023-01-05 12:00:00.000002: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1616] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 5911 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3070, pci bus id: 0000:01:00.0, compute capability: 8.6
/mnt/c/code/train.py:12: UserWarning: WSL
Epoch 1/3 loss: 0.61
```

## Sources

- <https://docs.nvidia.com/cuda/wsl-user-guide>
- <https://learn.microsoft.com/windows/ai/directml/gpu-cuda-in-wsl>
- <https://learn.microsoft.com/windows/wsl/wsl-config>
- <https://rocm.docs.amd.com/projects/radeon-ryzen/en/latest/>
- <https://github.com/ROCm/librocdxg/issues/34>
- <https://github.com/NVIDIA/nvidia-container-toolkit/issues/520>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.container_advice import (
    NEWER_TOOLKIT,
    START_UNDER_WSL,
    WINDOWS_DRIVER,
)
from whygpu.causes.evidence.cuda_start_suspects import suspected
from whygpu.causes.evidence.driver_state import (
    CONSEQUENCES,
    WSL_NODE,
    cu_init,
    cuda_starts,
    device_nodes,
    probed,
    uses_apt,
)
from whygpu.causes.evidence.log_cuda_start import (
    NOT_FOUND,
    STARTING_CALLS,
    SYMBOL_NOT_FOUND,
    ends_after,
    failed_at,
    lines_with,
    named,
    story_of,
)
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.driver import DeviceNode, DriverLibrary
from whygpu.model.finding import MACHINE, Confidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, NotApplicable, need, need_or
from whygpu.model.remedy import PrependPath, Steps, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import BuildKind

CAUSE = cause("WG802", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_PURGE = Steps(
    (
        command_line("sudo apt-get purge -y 'nvidia-driver-*' 'libnvidia-*' 'nvidia-dkms-*'"),
        command_line("sudo ldconfig"),
    )
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    version = need(machine.system.wsl)
    if not isinstance(machine.system.container, Absent):
        raise NotApplicable("own WSL system: this is a container in one")
    if version == 1:
        yield _first_generation(machine)
        return
    if cuda_starts(machine):
        return
    node = next((node for node in device_nodes(machine) if node.path == WSL_NODE), None)
    if node is None:
        yield _without_node(machine)
        return
    if not node.usable:
        yield _closed_node(machine, node)
        return
    library = machine.driver.cuda_library
    if isinstance(library, Known) and library.value.kind == "driver":
        yield _linux_driver(machine, library)
    elif isinstance(library, Absent):
        yield from _of_other_makers(machine)
        yield Gap(
            "whether Windows has an NVIDIA GPU: it offers graphics to WSL (/dev/dxg), but no "
            "NVIDIA driver; if it has one, install NVIDIA's driver in Windows and run wsl --update"
        )
    else:
        need(library)


_NEEDS: dict[BuildKind, str] = {
    "rocm": "AMD's guide for WSL lists the GPUs; before ROCm 7.13 it also needs the variable "
    "HSA_ENABLE_DXG_DETECTION=1",
    "xpu": "it needs Intel's driver in Windows, and Level Zero with Intel's compute runtime in WSL",
}


def _of_other_makers(machine: Snapshot) -> Iterator[Gap]:
    """Builds for GPUs with another driver than NVIDIA's, about which WSL shows nothing."""
    for framework in need_or(machine.target.frameworks, ()):
        kind = framework.build.kind
        needs = _NEEDS.get(kind.value) if isinstance(kind, Known) else None
        if needs is not None:
            name = f"{display_name(framework.name)} {framework.version}"
            yield Gap(f"whether {name} can use the GPU of Windows is not examined: {needs}")


def _closed_node(machine: Snapshot, node: DeviceNode) -> Finding:
    text = f"{node.mode}, group {node.group}"
    return CAUSE.finding(
        subject=MACHINE,
        message=f"this user may not open {WSL_NODE} ({text}), through which programs in WSL use the "
        "GPU",
        evidence=(seen(machine.driver.device_nodes, f"{WSL_NODE}: {text}"),),
        remedies=(
            Remedy(
                "Allow all users to open it, which is the default of WSL. It lasts until WSL is "
                "started again.",
                command_line("sudo chmod 0666 /dev/dxg"),
            ),
        ),
        confidence="likely",
    )


def _first_generation(machine: Snapshot) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message="this is WSL 1, which gives Linux programs no access to a GPU; WSL 2 does",
        evidence=(seen(machine.system.wsl, f"kernel {machine.system.kernel}"),),
        remedies=(
            Remedy(
                "Convert this distribution to WSL 2, in PowerShell; wsl -l -v lists its name.",
                command_line("wsl --set-version Ubuntu 2"),
            ),
        ),
        confidence="likely",
    )


def _without_node(machine: Snapshot) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message="Windows offers no GPU to this WSL 2: /dev/dxg, which Linux programs need to use "
        "it, is missing",
        evidence=(seen(machine.driver.device_nodes, "no /dev/dxg"),),
        remedies=(
            WINDOWS_DRIVER,
            Remedy(
                "Check that %UserProfile%\\.wslconfig does not contain gpuSupport=false, and that "
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
        "under WSL they need the one in /usr/lib/wsl/lib, which uses the Windows driver",
        evidence=(
            seen(library, f"libcuda.so.1 is {library.value.path}"),
            *((probed(answer),) if isinstance(answer, Known) else ()),
            seen(state, machine.driver.detail or None),
        ),
        remedies=(
            Remedy(
                "Put the right folder first in the library path.",
                PrependPath("LD_LIBRARY_PATH", ("/usr/lib/wsl/lib",)),
            ),
            Remedy(
                "For all programs, remove the Linux driver from WSL (CUDA toolkits may stay), then "
                "restart WSL.",
                _PURGE if uses_apt(machine) else None,
            ),
            WINDOWS_DRIVER,
        ),
        confidence=confidence,
    )


_STATEMENTS = late(
    r"GPU access blocked (?:by the operating system|in WSL)|Failed to initialize NVML: N/A"
    r"|/usr/lib/wsl/lib/nvidia-smi: (?:command )?not found"
    r"|WSL[^\n]{0,60}(?:does not support|no) GPU"
)
_OTHER_LIBCUDA = late(
    r"Python platform: [^\n]{0,60}microsoft-standard-WSL2[^\n]{0,80}\n(?:[^\n]{0,120}\n){0,4}?"
    r"[^\n]{0,12}Is CUDA available: False\n(?:[^\n]{0,120}\n){0,6}?"
    r"[^\n]{0,12}Nvidia driver version: Could not collect"
    r"|CUDA Version: ERR!(?=(?:[^\n]{0,200}\n){1,20}[^\n]{0,80}microsoft-standard-WSL2)"
)
"""Under WSL, PyTorch's report or nvidia-smi does not get to the driver that Windows provides."""
_NO_RELEASE = late(r"CUDA Version: (?:ERR!|N/A)")
"""nvidia-smi asks libcuda for it."""
_PLAIN_LIBCUDA = late(
    r"libcudnn\w{0,30}\.so[.\d]{0,8}[^\n]{0,40} libcuda\.so: cannot open shared object file"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    blocked = lines_with(log, _STATEMENTS)
    unread = lines_with(log, _NO_RELEASE) if story_of(log).place == "wsl" else ()
    plain = lines_with(log, _PLAIN_LIBCUDA)
    suspect = suspected(log, CAUSE.slug)
    lines = (
        *blocked,
        *plain,
        *ends_after(log, plain),
        *(suspect.lines if suspect else ()),
        *lines_with(log, _OTHER_LIBCUDA),
        *unread,
    )
    if not lines:
        return
    here = story_of(log).place == "wsl"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_log_message(log, blocked, plain),
        evidence=log.evidence(*lines),
        remedies=_log_remedies(log, blocked),
        confidence="certain" if (plain or blocked) and here else "likely",
        severity="error" if plain or blocked else suspect.severity if suspect else None,
        effect="broken" if plain or failed_at(log, lines) else "cpu",
        ask=None
        if here
        else "Did it run under WSL 2 (`uname -r` shows microsoft)? Then the driver is the one of "
        "Windows, in /usr/lib/wsl/lib. Otherwise a part of the NVIDIA driver is missing.",
    )


def _log_message(log: Log, blocked: tuple[int, ...], plain: tuple[int, ...]) -> str:
    if blocked:
        return "Windows does not let WSL use the GPU (GPU access blocked by the operating system)"
    if plain:
        return (
            "cuDNN does not find libcuda.so: under WSL 2 it is in /usr/lib/wsl/lib, which is not "
            "on the library path"
        )
    if _symbol_missing(log):
        return (
            "CUDA does not start in a container under WSL (named symbol not found): the container "
            "toolkit that started it is older than the driver of Windows, and does not pass in all "
            "of its libraries"
        )
    if story_of(log).in_container:
        return (
            "CUDA does not start in a container under WSL: it was started without GPUs, or the "
            "driver of Windows, WSL and Docker do not fit each other"
        )
    return (
        "CUDA does not start under WSL: another library was found instead of the Windows driver's "
        "in /usr/lib/wsl/lib, or Windows offers no GPU"
    )


def _symbol_missing(log: Log) -> bool:
    return any(status.call in STARTING_CALLS for status in named(log, NOT_FOUND, SYMBOL_NOT_FOUND))


def _log_remedies(log: Log, blocked: tuple[int, ...]) -> tuple[Remedy, ...]:
    if _symbol_missing(log):
        return (NEWER_TOOLKIT, WINDOWS_DRIVER)
    if story_of(log).in_container:
        start = () if blocked else (START_UNDER_WSL,)
        return (*start, WINDOWS_DRIVER, NEWER_TOOLKIT)
    path = Remedy(
        "Put the folder of the Windows driver first in the library path.",
        PrependPath("LD_LIBRARY_PATH", ("/usr/lib/wsl/lib",)),
    )
    linux_driver = Remedy(
        "Remove every Linux driver from WSL (CUDA toolkits may stay); in Debian and Ubuntu:",
        _PURGE,
    )
    return (WINDOWS_DRIVER,) if blocked else (path, linux_driver, WINDOWS_DRIVER)
