"""NVIDIA's driver branches: their CUDA, their end of life, and the GPUs that they support."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_NOTES = "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html"
_LIFE_2021 = "https://docs.nvidia.com/datacenter/tesla/pdf/NVIDIA_CUDA_Drivers_Support.pdf"
_LIFE = (
    "https://docs.nvidia.com/datacenter/tesla/drivers/615/"
    "supported-drivers-and-cuda-toolkit-versions.html"
)
_LEGACY = "https://forums.developer.nvidia.com/t/current-graphics-driver-releases/28500"
_LEGACY_580 = "https://wiki.nixos.org/wiki/NVIDIA"


class DriverBranch(NamedTuple):
    branch: int
    cuda: tuple[int, int]
    """The newest CUDA release that its drivers support."""
    end_of_life: str
    """The month, such as 2028-06; empty if NVIDIA's page does not say."""
    source: str


BRANCHES: tuple[DriverBranch, ...] = (
    DriverBranch(367, (8, 0), "", _NOTES),
    DriverBranch(375, (8, 0), "", _NOTES),
    DriverBranch(384, (9, 0), "", _NOTES),
    DriverBranch(390, (9, 1), "", _NOTES),
    DriverBranch(396, (9, 2), "", _NOTES),
    DriverBranch(410, (10, 0), "", _NOTES),
    DriverBranch(418, (10, 1), "2022-03", _LIFE_2021),
    DriverBranch(440, (10, 2), "2020-11", _LIFE_2021),
    DriverBranch(450, (11, 0), "2023-07", _LIFE_2021),
    DriverBranch(455, (11, 1), "", _NOTES),
    DriverBranch(460, (11, 2), "2022-01", _LIFE_2021),
    DriverBranch(465, (11, 3), "", _NOTES),
    DriverBranch(470, (11, 4), "", _NOTES),
    DriverBranch(495, (11, 5), "", _NOTES),
    DriverBranch(510, (11, 6), "", _NOTES),
    DriverBranch(515, (11, 7), "", _NOTES),
    DriverBranch(520, (11, 8), "", _NOTES),
    DriverBranch(525, (12, 0), "", _NOTES),
    DriverBranch(530, (12, 1), "", _NOTES),
    DriverBranch(535, (12, 2), "2026-06", _LIFE),
    DriverBranch(545, (12, 3), "", _NOTES),
    DriverBranch(550, (12, 4), "", _NOTES),
    DriverBranch(555, (12, 5), "", _NOTES),
    DriverBranch(560, (12, 6), "", _NOTES),
    DriverBranch(565, (12, 7), "", _NOTES),
    DriverBranch(570, (12, 8), "", _NOTES),
    DriverBranch(575, (12, 9), "", _NOTES),
    DriverBranch(580, (13, 0), "2028-06", _LIFE),
    DriverBranch(590, (13, 1), "", _NOTES),
    DriverBranch(595, (13, 2), "2027-03", _LIFE),
)


class LastBranch(NamedTuple):
    """The last driver branch for the GPUs below a compute capability."""

    below: tuple[int, int]
    branch: int
    source: str


LAST_BRANCHES: tuple[LastBranch, ...] = (
    LastBranch((3, 0), 390, _LEGACY),
    LastBranch((5, 0), 470, _LEGACY),
    LastBranch((7, 5), 580, _LEGACY_580),
)


def branch_of(driver: str) -> DriverBranch | None:
    """The branch of a driver version (470.82.01); None if it is not on record."""
    number = release_numbers(driver)[:1]
    return next((row for row in BRANCHES if (row.branch,) == number), None)


def first_branch_for(cuda: tuple[int, ...]) -> DriverBranch | None:
    """The oldest branch that supports a CUDA release without minor-version compatibility."""
    return next((row for row in BRANCHES if row.cuda >= cuda), None)


def last_branch_for(gpu: tuple[int, int]) -> LastBranch | None:
    """The last branch that supports a GPU; None for GPUs that are still supported."""
    return next((row for row in LAST_BRANCHES if gpu < row.below), None)


def is_after(driver: str, branch: int) -> bool:
    """Whether a driver belongs to a later branch; 581 and 582 are of branch 580, for Windows."""
    following = next((row.branch for row in BRANCHES if row.branch > branch), branch + 1)
    return release_numbers(driver)[0] >= following
