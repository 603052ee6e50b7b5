"""The oldest Windows driver that runs each CUDA release."""

from __future__ import annotations

from whygpu.tables.driver_floors import DriverFloor, driver_floors
from whygpu.tables.versions import release_numbers

_RELEASE_NOTES = "https://docs.nvidia.com/cuda/archive/11.0/cuda-toolkit-release-notes/index.html"
_COMPATIBILITY = (
    "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
)
_CUDNN = "https://docs.nvidia.com/deeplearning/cudnn/latest/support-matrix/index.html"

WINDOWS_FLOORS: tuple[DriverFloor, ...] = (
    DriverFloor((8, 0), (8, 0), "369.30", _RELEASE_NOTES),
    DriverFloor((8, 0), (8, 0), "376.51", _RELEASE_NOTES),
    DriverFloor((9, 0), (9, 0), "385.54", _RELEASE_NOTES),
    DriverFloor((9, 1), (9, 1), "391.29", _RELEASE_NOTES),
    DriverFloor((9, 2), (9, 2), "397.44", _RELEASE_NOTES),
    DriverFloor((9, 2), (9, 2), "398.26", _RELEASE_NOTES),
    DriverFloor((10, 0), (10, 0), "411.31", _RELEASE_NOTES),
    DriverFloor((10, 1), (10, 1), "418.96", _RELEASE_NOTES),
    DriverFloor((10, 2), (10, 2), "441.22", _RELEASE_NOTES),
    DriverFloor((11, 0), (11, 0), "451.22", _RELEASE_NOTES),
    DriverFloor((11, 1), (11, 99), "452.39", _CUDNN),
    DriverFloor((12, 0), (12, 99), "527.41", _CUDNN),
    DriverFloor((13, 0), (13, 99), "580", _COMPATIBILITY),
)


def windows_driver_floors(cuda: str) -> tuple[DriverFloor, ...]:
    """The rows that may hold for a CUDA version, lowest driver first; none if not on record."""
    wanted = release_numbers(cuda)[:2]
    if not wanted:
        return ()
    low, high = (wanted, wanted) if len(wanted) == 2 else ((wanted[0], 0), (wanted[0], 99))
    return tuple(row for row in WINDOWS_FLOORS if row.first <= high and low <= row.last)


def floors_for(platform: str, cuda: str) -> tuple[DriverFloor, ...]:
    """The rows of a platform (win_amd64) for a CUDA version."""
    return windows_driver_floors(cuda) if platform == "win_amd64" else driver_floors(cuda)
