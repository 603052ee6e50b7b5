"""Graphics hardware as the machine shows it, with or without a driver."""

from __future__ import annotations

import re

from whygpu.collectors.system import apple_chip
from whygpu.host.base import Host
from whygpu.model.driver import GraphicsDevice, Vendor
from whygpu.model.observed import Absent, Known, Observed, Undetermined, Unknown, need_or

PCI = "/sys/bus/pci/devices"
DEVICE_TREE = "/proc/device-tree/compatible"

VENDORS: dict[str, Vendor] = {"10de": "nvidia", "1002": "amd", "8086": "intel"}

DISPLAY = "03"
ACCELERATOR = "12"
VIDEO_CONTROLLERS = (
    "powershell",
    "-NoProfile",
    "-NonInteractive",
    "-Command",
    "(Get-CimInstance Win32_VideoController).PNPDeviceID",
)
WINDOWS_SECONDS = 10.0
PLUG_AND_PLAY = re.compile(r"^PCI\\VEN_(?P<vendor>\w{4})&DEV_(?P<device>\w{4})", re.MULTILINE)
ACCELERATOR_VENDORS = ("nvidia", "amd")
"""Makers whose PCI class "accelerator" means a GPU (AMD's Instinct). Intel's are NPUs."""


def collect(host: Host) -> Observed[tuple[GraphicsDevice, ...]]:
    """Every GPU; absent if the machine has none."""
    system = host.platform.system
    if system == "Darwin":
        return _apple(host)
    if system == "Windows":
        return _windows(host)
    if system != "Linux":
        return Unknown(f"graphics hardware is not read on {system}")
    on_chip = _tegra(host)
    on_bus = _pci(host)
    if isinstance(on_chip, Known):
        others = on_bus.value if isinstance(on_bus, Known) else ()
        return Known(on_chip.value + others, DEVICE_TREE)
    return on_bus if isinstance(on_chip, Absent) or isinstance(on_bus, Known) else on_chip


def _pci(host: Host) -> Observed[tuple[GraphicsDevice, ...]]:
    addresses = host.list(PCI)
    if isinstance(addresses, Absent):
        # Distinguish a machine without a PCI bus from a sandbox without sysfs.
        buses = host.list("/sys/bus")
        if isinstance(buses, Known) and "pci" not in buses.value:
            return Absent("PCI bus in /sys/bus")
        return Unknown(f"{PCI} does not exist")
    if isinstance(addresses, Unknown):
        return addresses
    try:
        devices = tuple(filter(None, (_pci_device(host, address) for address in addresses.value)))
    except Undetermined as error:
        # The device that cannot be read may be the GPU.
        return Unknown(error.reason)
    return Known(devices, PCI) if devices else Absent(f"graphics device in {PCI}")


def _pci_device(host: Host, address: str) -> GraphicsDevice | None:
    folder = f"{PCI}/{address}"
    kind = _hexadecimal(host, f"{folder}/class")[:2]
    if kind not in (DISPLAY, ACCELERATOR):
        return None
    vendor = VENDORS.get(_hexadecimal(host, f"{folder}/vendor"), "other")
    if kind == ACCELERATOR and vendor not in ACCELERATOR_VENDORS:
        return None
    return GraphicsDevice(
        vendor=vendor,
        address=address,
        device_id=_hexadecimal(host, f"{folder}/device"),
        kernel_driver=_kernel_driver(host, folder),
    )


def _hexadecimal(host: Host, path: str) -> str:
    """The content of a sysfs file without its 0x; empty if the device has disappeared."""
    return need_or(host.read(path), "").strip().removeprefix("0x")


def _kernel_driver(host: Host, folder: str) -> Observed[str]:
    link = host.stat(f"{folder}/driver")
    if isinstance(link, Known):
        return Known(link.value.real_path.rpartition("/")[2], link.source)
    return link


def _tegra(host: Host) -> Observed[tuple[GraphicsDevice, ...]]:
    """NVIDIA's own boards (Jetson), whose GPU is on the chip and not on a bus."""
    compatible = host.read(DEVICE_TREE)
    if not isinstance(compatible, Known):
        return compatible
    chip = re.search(r"nvidia,(tegra\d+)", compatible.value)
    if chip is None:
        return Absent(f"an NVIDIA chip in {DEVICE_TREE}")
    driver = host.stat("/sys/module/nvgpu")
    device = GraphicsDevice(
        vendor="nvidia",
        address="",
        device_id=chip[1],
        kernel_driver=Known("nvgpu", driver.source) if isinstance(driver, Known) else driver,
    )
    return Known((device,), DEVICE_TREE)


def _windows(host: Host) -> Observed[tuple[GraphicsDevice, ...]]:
    """The display adapters that Windows lists, whichever driver they have."""
    answer = host.run(VIDEO_CONTROLLERS, timeout=WINDOWS_SECONDS)
    # Every Windows has an adapter, if only for a remote desktop: no output is no answer.
    if not isinstance(answer, Known) or answer.value.code != 0 or not answer.value.stdout.strip():
        return Unknown("PowerShell did not list the display adapters")
    devices = tuple(
        GraphicsDevice(
            vendor=VENDORS.get(match["vendor"].lower(), "other"),
            address="",
            device_id=match["device"].lower(),
            kernel_driver=Unknown("kernel drivers are not read on Windows"),
        )
        for match in PLUG_AND_PLAY.finditer(answer.value.stdout)
    )
    source = "Win32_VideoController"
    return Known(devices, source) if devices else Absent(f"PCI device in {source}")


def _apple(host: Host) -> Observed[tuple[GraphicsDevice, ...]]:
    if host.platform.machine != "arm64":
        return Unknown("graphics hardware of Macs with an Intel processor is not read")
    chip = apple_chip(host)
    device = GraphicsDevice(
        vendor="apple",
        address="",
        device_id=chip.value if isinstance(chip, Known) else "Apple silicon",
        kernel_driver=Unknown("kernel drivers are not read on macOS"),
    )
    return Known((device,), "Apple silicon has its GPU on the chip")
