"""AMD and Intel graphics that no deep-learning framework computes on, by their PCI device id."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.driver import GraphicsDevice

_AMDGPU = "https://github.com/torvalds/linux/blob/master/drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c"
_RADEON = "https://github.com/torvalds/linux/blob/master/include/drm/drm_pciids.h"
_PCI_IDS = "https://pci-ids.ucw.cz/read/PC/1002"


class DisplayOnly(NamedTuple):
    """A range of device ids, both ends included."""

    vendor: Literal["amd"]
    first: str
    last: str
    what: str
    source: str


DISPLAY_ONLY = (
    DisplayOnly("amd", "1114", "1114", "Krackan Point, in the processor", _PCI_IDS),
    DisplayOnly("amd", "1304", "131d", "Kaveri, in the processor", _AMDGPU),
    DisplayOnly("amd", "13c0", "13c0", "Granite Ridge, in the processor", _PCI_IDS),
    DisplayOnly("amd", "1435", "1435", "Van Gogh, in the processor", _PCI_IDS),
    DisplayOnly("amd", "1506", "1506", "Mendocino, in the processor", _PCI_IDS),
    DisplayOnly("amd", "150e", "150e", "Strix Point, in the processor", _PCI_IDS),
    DisplayOnly("amd", "15bf", "15bf", "Phoenix, in the processor", _PCI_IDS),
    DisplayOnly("amd", "15c8", "15c8", "Phoenix 2, in the processor", _PCI_IDS),
    DisplayOnly("amd", "15d8", "15d8", "Picasso, in the processor", _AMDGPU),
    DisplayOnly("amd", "15dd", "15dd", "Raven Ridge, in the processor", _AMDGPU),
    DisplayOnly("amd", "15e7", "15e7", "Barcelo, in the processor", _AMDGPU),
    DisplayOnly("amd", "1636", "1636", "Renoir, in the processor", _AMDGPU),
    DisplayOnly("amd", "1638", "1638", "Cezanne, in the processor", _AMDGPU),
    DisplayOnly("amd", "163f", "163f", "Van Gogh, in the processor", _AMDGPU),
    DisplayOnly("amd", "164c", "164c", "Lucienne, in the processor", _AMDGPU),
    DisplayOnly("amd", "164d", "164d", "Rembrandt, in the processor", _AMDGPU),
    DisplayOnly("amd", "164e", "164e", "Raphael, in the processor", _PCI_IDS),
    DisplayOnly("amd", "1681", "1681", "Rembrandt, in the processor", _AMDGPU),
    DisplayOnly("amd", "1900", "1901", "Hawk Point, in the processor", _PCI_IDS),
    DisplayOnly("amd", "4752", "4752", "Rage XL, on server boards", _PCI_IDS),
    DisplayOnly("amd", "5159", "5159", "RV100, on server boards", _RADEON),
    DisplayOnly("amd", "515e", "515e", "ES1000, on server boards", _RADEON),
    DisplayOnly("amd", "5969", "5969", "ES1000, on server boards", _RADEON),
    DisplayOnly("amd", "9640", "964f", "Sumo, in the processor", _RADEON),
    DisplayOnly("amd", "9802", "980a", "Wrestler, in the processor", _RADEON),
    DisplayOnly("amd", "9830", "985f", "Kabini and Mullins, in the processor", _AMDGPU),
    DisplayOnly("amd", "9874", "9874", "Carrizo, in the processor", _AMDGPU),
    DisplayOnly("amd", "98e4", "98e4", "Stoney Ridge, in the processor", _AMDGPU),
    DisplayOnly("amd", "9900", "99a4", "Trinity and Richland, in the processor", _RADEON),
)

INTEL_INTEGRATED = "00:02.0"
"""The address of Intel's integrated graphics on every board: function 0 of device 2, first bus."""


def display_only(vendor: str, device_id: str) -> DisplayOnly | None:
    """The row of a chip that is only for graphics; None for one that may compute."""
    try:
        number = int(device_id, 16)
    except ValueError:
        return None
    return next(
        (
            row
            for row in DISPLAY_ONLY
            if row.vendor == vendor and int(row.first, 16) <= number <= int(row.last, 16)
        ),
        None,
    )


def can_compute(device: GraphicsDevice) -> bool:
    """Whether frameworks can compute on this GPU of another maker than NVIDIA."""
    if device.vendor == "amd":
        return display_only("amd", device.device_id) is None
    if device.vendor == "intel":
        # Windows shows no address, and most of these are integrated.
        return bool(device.address) and not device.address.endswith(INTEL_INTEGRATED)
    return device.vendor == "apple"
