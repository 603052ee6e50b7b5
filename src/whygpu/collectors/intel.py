"""Intel GPUs: their device files, and the driver for Level Zero. No program is started."""

from __future__ import annotations

import re

from whygpu.collectors.driver_files import find_library, nodes_at
from whygpu.collectors.graphics import PCI
from whygpu.host.base import Host
from whygpu.model.driver import DeviceNode, GraphicsDevice
from whygpu.model.intel_driver import IntelDriver
from whygpu.model.observed import Absent, Known, Observed, Unknown

DRI = "/dev/dri"
LEVEL_ZERO = "libze_intel_gpu.so.1"

_RENDER = re.compile(r"renderD\d{1,4}")


def collect(host: Host, graphics: Observed[tuple[GraphicsDevice, ...]]) -> Observed[IntelDriver]:
    """Absent if the bus has no GPU of Intel, so that other machines are not searched."""
    if not isinstance(graphics, Known):
        return graphics
    devices = [device for device in graphics.value if device.vendor == "intel"]
    if not devices:
        return Absent(f"a GPU of Intel in {graphics.source}")
    if host.platform.system != "Linux":
        return Unknown("the driver of Intel GPUs is read on Linux only")
    nodes = _device_nodes(host, devices)
    return Known(IntelDriver(nodes, find_library(host, LEVEL_ZERO)), "the kernel's files")


def _device_nodes(host: Host, devices: list[GraphicsDevice]) -> Observed[tuple[DeviceNode, ...]]:
    """The files of these GPUs. Beside them, /dev/dri has those of other makers."""
    names: list[str] = []
    for device in devices:
        listed = host.list(f"{PCI}/{device.address}/drm")
        if isinstance(listed, Unknown):
            return listed
        if isinstance(listed, Known):
            names += [name for name in listed.value if _RENDER.fullmatch(name)]
    if not names:
        return Absent(f"a render node below {PCI}/*/drm")
    return nodes_at(host, (f"{DRI}/{name}" for name in names), f"{DRI}/renderD*")
