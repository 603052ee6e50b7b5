"""Facts of a snapshot that the driver, device and container families share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from whygpu.model.derived import devices_of
from whygpu.model.driver import DeviceNode, DriverLibrary, Gpu, GraphicsDevice
from whygpu.model.finding import Evidence, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, Observed, Unknown, need, need_or
from whygpu.model.remedy import command_line
from whygpu.model.snapshot import Snapshot

CONSEQUENCES = (
    "gpu-unused",
    "gpu-index-unchecked",
    "cuda-init-failed",
    "keras-backend-without-gpu",
    "device-placement-nonexistent",
)
"""Consequences of every fault that prevents the use of the driver."""

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""CUDA opens both on every machine, in addition to the node of each GPU."""

WSL_NODE = "/dev/dxg"

_PCI_ID = late(r"[0-9a-f]{4}")
_GPU_NODE = late(r"/dev/nvidia\d+")

Place = Literal["bare", "container", "wsl"]


def place_of(machine: Snapshot) -> Place:
    """Whose driver this is: the machine's own, the container host's, or that of Windows."""
    if need_or(machine.system.container, None) is not None:
        return "container"
    if need_or(machine.system.wsl, None) is not None:
        return "wsl"
    return "bare"


class CuInit(NamedTuple):
    """The result of the driver's first call."""

    code: int
    text: str
    """Code and name: 100 CUDA_ERROR_NO_DEVICE."""


def cu_init(machine: Snapshot) -> Observed[CuInit]:
    """The result of cuInit; absent if the probe did not call it."""
    probe = machine.probe("cuda")
    if not isinstance(probe, Known):
        return probe
    text = probe.value.fact("cuInit")
    if text is None:
        return Absent("result of cuInit")
    code = text.partition(" ")[0]
    if not code.isdecimal():
        return Unknown(f"the CUDA probe reports a result of cuInit that is not a number: {text!r}")
    return Known(CuInit(int(code), text), "cuInit in the CUDA probe")


def cuda_starts(machine: Snapshot) -> bool:
    """cuInit was called in the probe and succeeded."""
    answer = cu_init(machine)
    return isinstance(answer, Known) and answer.value.code == 0


def probed(answer: Known[CuInit]) -> Evidence:
    return Evidence("probe", answer.source, f"returned {answer.value.text}")


def device_nodes(machine: Snapshot) -> tuple[DeviceNode, ...]:
    return need_or(machine.driver.device_nodes, ())


def gpu_nodes(nodes: Iterable[DeviceNode]) -> tuple[DeviceNode, ...]:
    """The nodes of single GPUs, /dev/nvidia0 and so on."""
    return tuple(node for node in nodes if _GPU_NODE.fullmatch(node.path))


def nvidia_hardware(machine: Snapshot) -> tuple[GraphicsDevice, ...]:
    """NVIDIA devices on the bus; empty if there are none or the bus cannot be read."""
    return devices_of(machine, "nvidia")


def on_tegra(machine: Snapshot) -> bool:
    """A Jetson: its GPU is part of the chip, and its driver is built and named differently."""
    return any(device.device_id.startswith("tegra") for device in nvidia_hardware(machine))


def other_holders(machine: Snapshot) -> tuple[str, ...]:
    """Kernel drivers other than NVIDIA's that are bound to the NVIDIA devices, each once."""
    names = (
        device.kernel_driver.value
        for device in nvidia_hardware(machine)
        if isinstance(device.kernel_driver, Known) and device.kernel_driver.value != "nvidia"
    )
    return tuple(dict.fromkeys(names))


def uses_nvidia_module(machine: Snapshot) -> bool:
    """NVIDIA's kernel driver is bound to a card."""
    return any(
        isinstance(device.kernel_driver, Known) and device.kernel_driver.value == "nvidia"
        for device in nvidia_hardware(machine)
    )


def real_library(library: Observed[DriverLibrary]) -> Known[DriverLibrary] | None:
    """The library if it belongs to a driver; a toolkit's stub is only for linking."""
    if isinstance(library, Known) and library.value.kind != "toolkit-stub":
        return library
    return None


def from_image(machine: Snapshot, library: DriverLibrary) -> bool:
    """In a container: the library is part of the image, not mounted from the host."""
    container = machine.system.container
    if not isinstance(container, Known):
        return False
    mounts = container.value.driver_mounts
    if isinstance(mounts, Absent):
        return True
    if not isinstance(mounts, Known):
        return False
    stem = re.sub(r"\.so[.\d]*$", ".so", library.path.rpartition("/")[2])
    version = library.version.value if isinstance(library.version, Known) else None
    return not any(
        library.path == mount
        or library.path.startswith(mount + "/")
        or (version is not None and mount.endswith(f"/{stem}.{version}"))
        for mount in mounts.value
    )


def numbers(version: str) -> tuple[int, ...]:
    """A driver version as numbers: some sources write 580.159.04 as 580.159.4."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def differing_libraries(machine: Snapshot) -> tuple[Known[DriverLibrary], ...]:
    """The driver's libraries whose version differs from the loaded kernel module's.

    NVIDIA's compat libraries differ on purpose and do not count.
    """
    module = machine.driver.kernel_module
    if not isinstance(module, Known):
        return ()
    return tuple(
        library
        for library in (machine.driver.cuda_library, machine.driver.nvml_library)
        if isinstance(library, Known)
        and library.value.kind == "driver"
        and isinstance(library.value.version, Known)
        and numbers(library.value.version.value) != numbers(module.value)
    )


def withheld_at_start(machine: Snapshot) -> Known[str] | None:
    """NVIDIA_VISIBLE_DEVICES, if its value made the container start without a GPU."""
    value = machine.environment.get("NVIDIA_VISIBLE_DEVICES")
    if not isinstance(value, Known) or value.value.strip().lower() not in ("", "none", "void"):
        return None
    if place_of(machine) != "container" or gpu_nodes(device_nodes(machine)):
        # The container toolkit itself sets "void" for GPUs that it passes in by other means.
        return None
    # Without the host's kernel module, no value could have passed in a GPU.
    return None if isinstance(machine.driver.kernel_module, Absent) else value


def selected_gpus(machine: Snapshot) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible; all if it is not set or not clear."""
    gpus = need(machine.driver.gpus)
    selection = machine.environment.visible_gpus
    if not isinstance(selection, Known) or not isinstance(selection.value.visible, Known):
        return gpus
    return tuple(gpu for gpu in gpus if gpu.number in selection.value.visible.value)


_INSTALL_COMMANDS = (
    ("ubuntu", command_line("sudo ubuntu-drivers install")),
    ("mint", command_line("sudo ubuntu-drivers install")),
    ("pop!_os", command_line("sudo apt install system76-driver-nvidia")),
    ("debian", command_line("sudo apt install nvidia-driver")),
    ("fedora", command_line("sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda")),
    ("arch", command_line("sudo pacman -S nvidia-open nvidia-utils")),
)
_DEBIAN_FAMILY = ("debian", "ubuntu", "mint", "pop!_os")
_FIRST_TURING = 0x1E00
"""NVIDIA numbers its PCI devices by generation. The open modules drive Turing and newer."""
"""The distribution's own command; Debian and Fedora need non-free packages enabled."""


def distribution(machine: Snapshot) -> str:
    """Its name in lower case; empty if it is not known."""
    name = machine.system.distribution
    return name.value.lower() if isinstance(name, Known) else ""


def uses_apt(machine: Snapshot) -> bool:
    return any(word in distribution(machine) for word in _DEBIAN_FAMILY)


def _before_turing(machine: Snapshot) -> bool:
    numbers = [
        int(d.device_id, 16) for d in nvidia_hardware(machine) if _PCI_ID.fullmatch(d.device_id)
    ]
    return bool(numbers) and min(numbers) < _FIRST_TURING


def install_driver(machine: Snapshot) -> Remedy:
    """How to install the driver, with the distribution's own command if we know it."""
    if on_tegra(machine):
        return Remedy(
            "Install the driver of this board, which is part of JetPack.",
            command_line("sudo apt install nvidia-jetpack"),
        )
    known = distribution(machine)
    if "arch" in known and _before_turing(machine):
        return Remedy(
            "Install NVIDIA's proprietary driver for this generation of GPUs, and restart the "
            "machine: the package nvidia-open of Arch needs Turing or newer. For Maxwell, Pascal "
            "and Volta it is nvidia-580xx-dkms from the AUR."
        )
    for word, action in _INSTALL_COMMANDS:
        if word in known:
            return Remedy("Install NVIDIA's driver and restart the machine.", action)
    return Remedy(
        "Install NVIDIA's driver from your distribution's packages or from "
        "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/, and restart the "
        "machine."
    )
