"""The oldest Linux driver that runs each CUDA release."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_RELEASE_NOTES = "https://docs.nvidia.com/cuda/archive/11.0/cuda-toolkit-release-notes/index.html"
_COMPATIBILITY = (
    "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
)
_TOOLKIT_12 = "https://docs.nvidia.com/cuda/archive/12.5.1/cuda-toolkit-release-notes/index.html"

FAMILIES_FROM = 11
"""From this major release on, all minor releases of a major release need the same driver."""


class DriverFloor(NamedTuple):
    """The oldest driver for the CUDA releases from `first` to `last`."""

    first: tuple[int, int]
    last: tuple[int, int]
    driver: str
    source: str


FLOORS: tuple[DriverFloor, ...] = (
    # Two builds were published as 8.0, and two as 9.2: their floors differ.
    DriverFloor((8, 0), (8, 0), "367.48", _RELEASE_NOTES),
    DriverFloor((8, 0), (8, 0), "375.26", _RELEASE_NOTES),
    DriverFloor((9, 0), (9, 0), "384.81", _RELEASE_NOTES),
    DriverFloor((9, 1), (9, 1), "390.46", _RELEASE_NOTES),
    DriverFloor((9, 2), (9, 2), "396.26", _RELEASE_NOTES),
    DriverFloor((9, 2), (9, 2), "396.37", _RELEASE_NOTES),
    DriverFloor((10, 0), (10, 0), "410.48", _RELEASE_NOTES),
    DriverFloor((10, 1), (10, 1), "418.39", _RELEASE_NOTES),
    DriverFloor((10, 2), (10, 2), "440.33", _RELEASE_NOTES),
    # 11.0 came out before minor-version compatibility, which begins with 450.80.02.
    DriverFloor((11, 0), (11, 0), "450.36.06", _RELEASE_NOTES),
    DriverFloor((11, 1), (11, 99), "450.80.02", _COMPATIBILITY),
    DriverFloor((12, 0), (12, 99), "525.60.13", _TOOLKIT_12),
    DriverFloor((13, 0), (13, 99), "580", _COMPATIBILITY),
)


def driver_floors(cuda: str) -> tuple[DriverFloor, ...]:
    """The rows that may hold for a CUDA version, lowest driver first; none if not on record.

    A version without its minor number ("10") may be any of several releases.
    """
    wanted = release_numbers(cuda)[:2]
    if not wanted:
        return ()
    low, high = (wanted, wanted) if len(wanted) == 2 else ((wanted[0], 0), (wanted[0], 99))
    return tuple(row for row in FLOORS if row.first <= high and low <= row.last)
