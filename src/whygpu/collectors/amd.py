"""AMD GPUs: what the kernel's compute driver offers, and who may use it. No program is started."""

from __future__ import annotations

import re

from whygpu.collectors.driver_files import nodes_at
from whygpu.host.base import Host
from whygpu.model.amd_driver import AmdDriver, AmdGpu
from whygpu.model.driver import DeviceNode, GraphicsDevice
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.tables.amd_targets import target_of_number

TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"
KFD = "/dev/kfd"
DRI = "/dev/dri"
ROCM_VERSION = "/opt/rocm/.info/version"

_RENDER = re.compile(r"renderD\d{1,4}")
_TARGET = re.compile(r"^gfx_target_version (\d{1,9})$", re.MULTILINE)


def collect(host: Host, graphics: Observed[tuple[GraphicsDevice, ...]]) -> Observed[AmdDriver]:
    """Absent if the bus has no GPU of AMD, so that other machines are not searched."""
    if not isinstance(graphics, Known):
        return graphics
    if all(device.vendor != "amd" for device in graphics.value):
        return Absent(f"a GPU of AMD in {graphics.source}")
    if host.platform.system != "Linux":
        return Unknown("the driver of AMD GPUs is read on Linux only")
    driver = AmdDriver(_gpus(host), _device_nodes(host), _rocm(host))
    return Known(driver, "the kernel's files")


def _gpus(host: Host) -> Observed[tuple[AmdGpu, ...]]:
    numbers = host.list(TOPOLOGY)
    if not isinstance(numbers, Known):
        return numbers
    found: list[AmdGpu] = []
    hidden: Unknown | None = None
    for number in sorted(int(name) for name in numbers.value if name.isdecimal()):
        path = f"{TOPOLOGY}/{number}/properties"
        properties = host.read(path)
        if not isinstance(properties, Known):
            # In a container, the kernel does not describe the GPUs that it may not use.
            if hidden is None:
                missing = Unknown(f"{path} is missing")
                hidden = properties if isinstance(properties, Unknown) else missing
            continue
        match = _TARGET.search(properties.value)
        if match is None:
            return Unknown(f"{path} does not name the target, as on older kernels")
        if int(match[1]):
            found.append(AmdGpu(number, target_of_number(int(match[1]))))
    if found:
        return Known(tuple(found), TOPOLOGY)
    return Absent(f"a GPU in {TOPOLOGY}") if hidden is None else hidden


def _device_nodes(host: Host) -> Observed[tuple[DeviceNode, ...]]:
    names = host.list(DRI)
    if isinstance(names, Unknown):
        return names
    listed = names.value if isinstance(names, Known) else ()
    paths = [KFD, *(f"{DRI}/{name}" for name in listed if _RENDER.fullmatch(name))]
    return nodes_at(host, paths, f"{KFD}, {DRI}/renderD*")


def _rocm(host: Host) -> Observed[str]:
    version = host.read(ROCM_VERSION)
    return Known(version.value.strip(), ROCM_VERSION) if isinstance(version, Known) else version
