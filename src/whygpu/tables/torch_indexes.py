"""The CUDA builds of PyTorch: the package index of each, and the GPU code inside."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

INDEX_ROOT = "https://download.pytorch.org/whl/"
_PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
_STABLE = "https://download.pytorch.org/whl/torch_stable.html"
_RELEASE_2_12 = "https://github.com/pytorch/pytorch/releases/tag/v2.12.0"
_MATRIX_2_14 = "https://github.com/pytorch/pytorch/pull/197555"
_MATRIX_2_15 = "https://github.com/pytorch/pytorch/issues/190385"


class TorchBuilds(NamedTuple):
    release: tuple[int, int]
    cuda: tuple[str, ...]
    """The indexes with CUDA builds of this release, from old to new: cu118, cu121."""
    source: str


BUILDS: tuple[TorchBuilds, ...] = (
    TorchBuilds((1, 0), ("cu80", "cu90", "cu100"), _PREVIOUS),
    TorchBuilds((1, 1), ("cu90", "cu100"), _PREVIOUS),
    TorchBuilds((1, 2), ("cu92", "cu100"), _PREVIOUS),
    TorchBuilds((1, 3), ("cu92", "cu100", "cu101"), _STABLE),
    TorchBuilds((1, 4), ("cu92", "cu100", "cu101"), _STABLE),
    TorchBuilds((1, 5), ("cu92", "cu101", "cu102"), _PREVIOUS),
    TorchBuilds((1, 6), ("cu92", "cu101", "cu102"), _PREVIOUS),
    TorchBuilds((1, 7), ("cu92", "cu101", "cu102", "cu110"), _PREVIOUS),
    TorchBuilds((1, 8), ("cu101", "cu102", "cu111"), _PREVIOUS),
    TorchBuilds((1, 9), ("cu102", "cu111"), _PREVIOUS),
    TorchBuilds((1, 10), ("cu102", "cu111", "cu113"), _PREVIOUS),
    TorchBuilds((1, 11), ("cu102", "cu113", "cu115"), _STABLE),
    TorchBuilds((1, 12), ("cu102", "cu113", "cu116"), _PREVIOUS),
    TorchBuilds((1, 13), ("cu116", "cu117"), _PREVIOUS),
    TorchBuilds((2, 0), ("cu117", "cu118"), _PREVIOUS),
    TorchBuilds((2, 1), ("cu118", "cu121"), _PREVIOUS),
    TorchBuilds((2, 2), ("cu118", "cu121"), _PREVIOUS),
    TorchBuilds((2, 3), ("cu118", "cu121"), _PREVIOUS),
    TorchBuilds((2, 4), ("cu118", "cu121", "cu124"), _PREVIOUS),
    TorchBuilds((2, 5), ("cu118", "cu121", "cu124"), _PREVIOUS),
    TorchBuilds((2, 6), ("cu118", "cu124", "cu126"), _PREVIOUS),
    TorchBuilds((2, 7), ("cu118", "cu126", "cu128"), _PREVIOUS),
    TorchBuilds((2, 8), ("cu126", "cu128", "cu129"), _PREVIOUS),
    TorchBuilds((2, 9), ("cu126", "cu128", "cu130"), _PREVIOUS),
    TorchBuilds((2, 10), ("cu126", "cu128", "cu130"), _PREVIOUS),
    TorchBuilds((2, 11), ("cu126", "cu128", "cu129", "cu130"), _PREVIOUS),
    TorchBuilds((2, 12), ("cu126", "cu130", "cu132"), _RELEASE_2_12),
    TorchBuilds((2, 13), ("cu126", "cu130", "cu132"), _MATRIX_2_14),
    TorchBuilds((2, 14), ("cu126", "cu130", "cu132"), _MATRIX_2_14),
    # The last builds for CUDA 12, and with them for Maxwell, Pascal and Volta, are those of 2.14.
    TorchBuilds((2, 15), ("cu130", "cu132"), _MATRIX_2_15),
)
"""Later releases are not on record."""

FIRST_WITH_INDEX = (1, 11)
"""Older builds are in one list of files (torch_stable.html) and have other commands."""


class IndexCode(NamedTuple):
    """The GPU code of the builds on some indexes, for one platform and a range of releases."""

    platform: str
    first: tuple[int, int]
    last: tuple[int, int]
    indexes: tuple[str, ...]
    architectures: tuple[str, ...]
    source: str
    is_certain: bool = True
    """False if the builds are reported to exist, but no list of PyTorch names them."""


_SCRIPTS = "https://github.com/pytorch/builder/blob/release/2.5/manywheel/build_cuda.sh"
_SCRIPTS_2_7 = "https://github.com/pytorch/pytorch/blob/release/2.7/.ci/manywheel/build_cuda.sh"
_WINDOWS_SCRIPTS = "https://github.com/pytorch/builder/tree/release/2.5/windows"
_MEASURED = "https://github.com/nikopueringer/CorridorKey/pull/141"
_MEASURED_2_11 = "https://github.com/pytorch/pytorch/issues/182250"
_MATRIX_2_12 = "https://github.com/pytorch/pytorch/pull/182849"
_ARM_2_6 = "https://github.com/pytorch/pytorch/pull/144436"
_ARM_2_7 = "https://github.com/pytorch/pytorch/pull/146378"
_ARM_2_8 = "https://github.com/pytorch/pytorch/issues/160162"
_ARM_12_9 = "https://github.com/pytorch/pytorch/pull/157843"
_ARM_2_9 = "https://github.com/pytorch/pytorch/pull/163764"


def _code(*numbers: int) -> tuple[str, ...]:
    return tuple(f"sm_{number}" for number in numbers)


_AMPERE = _code(37, 50, 60, 70, 75, 80, 86)
_HOPPER = _code(37, 50, 60, 70, 75, 80, 86, 90)
_MAXWELL_TO_HOPPER = _code(50, 60, 70, 75, 80, 86, 90)
_VOLTA_TO_BLACKWELL = _code(70, 75, 80, 86, 90, 100, 120)
_TURING_TO_BLACKWELL = _code(75, 80, 86, 90, 100, 120)
_LINUX, _ARM, _WINDOWS = "linux_x86_64", "linux_aarch64", "win_amd64"
_CU11 = ("cu113", "cu115", "cu116", "cu117")
_CU13 = ("cu130", "cu132")

CODES: tuple[IndexCode, ...] = (
    IndexCode(_LINUX, (1, 11), (1, 12), ("cu102",), _code(37, 50, 60, 70), _SCRIPTS),
    IndexCode(_LINUX, (1, 11), (2, 0), _CU11, _AMPERE, _SCRIPTS),
    IndexCode(_LINUX, (2, 0), (2, 5), ("cu118",), _HOPPER, _SCRIPTS),
    # By the script as it was between these two releases.
    IndexCode(_LINUX, (2, 6), (2, 7), ("cu118",), _HOPPER, _SCRIPTS_2_7),
    IndexCode(_LINUX, (2, 1), (2, 6), ("cu121", "cu124"), _MAXWELL_TO_HOPPER, _SCRIPTS),
    IndexCode(_LINUX, (2, 6), (2, 10), ("cu126",), _MAXWELL_TO_HOPPER, _MEASURED),
    IndexCode(_LINUX, (2, 11), (2, 14), ("cu126",), _MAXWELL_TO_HOPPER, _MATRIX_2_14),
    IndexCode(
        _LINUX, (2, 7), (2, 7), ("cu128",), (*_TURING_TO_BLACKWELL, "compute_120"), _MEASURED
    ),
    IndexCode(_LINUX, (2, 8), (2, 10), ("cu128", "cu129"), _VOLTA_TO_BLACKWELL, _MEASURED),
    IndexCode(_LINUX, (2, 11), (2, 11), ("cu128", "cu129"), _TURING_TO_BLACKWELL, _MEASURED_2_11),
    IndexCode(_LINUX, (2, 9), (2, 15), _CU13, _TURING_TO_BLACKWELL, _MATRIX_2_12),
    IndexCode(_WINDOWS, (1, 11), (2, 0), _CU11, (*_AMPERE, "compute_37"), _WINDOWS_SCRIPTS),
    IndexCode(_WINDOWS, (2, 0), (2, 7), ("cu118",), (*_HOPPER, "compute_37"), _WINDOWS_SCRIPTS),
    IndexCode(_WINDOWS, (2, 1), (2, 6), ("cu121", "cu124"), _MAXWELL_TO_HOPPER, _WINDOWS_SCRIPTS),
    IndexCode(_WINDOWS, (2, 6), (2, 10), ("cu126",), _MAXWELL_TO_HOPPER, _MEASURED),
    IndexCode(_WINDOWS, (2, 11), (2, 14), ("cu126",), _MAXWELL_TO_HOPPER, _MATRIX_2_14),
    IndexCode(
        _WINDOWS, (2, 7), (2, 7), ("cu128",), (*_MAXWELL_TO_HOPPER, *_code(100, 120)), _MEASURED
    ),
    IndexCode(_WINDOWS, (2, 8), (2, 10), ("cu128", "cu129"), _VOLTA_TO_BLACKWELL, _MEASURED),
    IndexCode(_WINDOWS, (2, 11), (2, 11), ("cu128",), _TURING_TO_BLACKWELL, _MATRIX_2_12),
    IndexCode(_WINDOWS, (2, 9), (2, 15), _CU13, _TURING_TO_BLACKWELL, _MATRIX_2_12),
    IndexCode(_ARM, (2, 6), (2, 6), ("cu126",), _code(90), _ARM_2_6, is_certain=False),
    IndexCode(_ARM, (2, 7), (2, 7), ("cu128",), _code(90, 100, 120), _ARM_2_7, is_certain=False),
    IndexCode(_ARM, (2, 8), (2, 8), ("cu128",), _code(90, 100, 120), _ARM_2_8, is_certain=False),
    IndexCode(
        _ARM, (2, 8), (2, 8), ("cu129",), _code(80, 90, 100, 120), _ARM_12_9, is_certain=False
    ),
    IndexCode(_ARM, (2, 9), (2, 14), ("cu126",), _code(80, 90), _ARM_2_9),
    IndexCode(_ARM, (2, 9), (2, 11), ("cu128",), _code(80, 90, 100, 120), _MATRIX_2_12),
    # Also read from the wheels of 2.11.0 and 2.15.0 on the default package index.
    IndexCode(_ARM, (2, 9), (2, 15), _CU13, _code(80, 90, 100, 110, 120), _MATRIX_2_12),
)
"""Linux on x86_64 has a build on every index. The other platforms have only these builds. Some
Windows builds also have sm_61, which changes nothing, and some Linux builds for CUDA 13 have PTX.
"""

_BY_RELEASE = {row.release: row.cuda for row in BUILDS}
INDEXES = tuple(
    sorted({tag for row in BUILDS for tag in row.cuda}, key=lambda tag: int(tag.removeprefix("cu")))
)


def torch_release(package: str, version: str) -> tuple[int, int] | None:
    """The release of torch that a release of torch, torchvision or torchaudio belongs to."""
    major, minor = (*release_numbers(version), 0, 0)[:2]
    if package in ("torch", "torchaudio") and major:
        return major, minor
    if package == "torchaudio":
        return 1, minor
    if package == "torchvision" and minor >= 5:
        return (2, minor - 15) if minor >= 15 else (1, minor - 1)
    return None


def indexes_of(release: tuple[int, int]) -> tuple[str, ...]:
    """The indexes with CUDA builds of a release of torch; empty if it is not on record."""
    return _BY_RELEASE.get(release, ())


def index_exists(tag: str) -> bool | None:
    """Whether there are builds for this CUDA (cu125); None for CUDA newer than the table."""
    if tag in INDEXES:
        return True
    newest = INDEXES[-1].removeprefix("cu")
    # cu92 is CUDA 9.2 and cu101 is CUDA 10.1: the last digit is the minor number.
    number = tag.removeprefix("cu")
    return False if number.isdecimal() and int(number) < int(newest) else None


def releases_on(tag: str) -> tuple[tuple[int, int], ...]:
    """The releases of torch with builds for this CUDA, from old to new."""
    return tuple(row.release for row in BUILDS if tag in row.cuda)


def index_has(tag: str, release: tuple[int, int]) -> bool | None:
    """Whether the index with builds for a CUDA release has a release of torch.

    None for a release between two listed ones: PyTorch's pages do not list every build.
    """
    listed = releases_on(tag)
    if not listed:
        return index_exists(tag)
    if release in listed:
        return True
    still_published = listed[-1] == BUILDS[-1].release
    outside = release < listed[0] or (release > listed[-1] and not still_published)
    return False if outside else None


def build_code(platform: str, release: tuple[int, int], tag: str) -> IndexCode | None:
    """The GPU code of the build on an index; None if it is not on record."""
    return next(
        (
            row
            for row in CODES
            if row.platform == platform and row.first <= release <= row.last and tag in row.indexes
        ),
        None,
    )


def indexes_for(platform: str, release: tuple[int, int]) -> tuple[str, ...]:
    """The indexes with CUDA builds of a release for a platform, from old to new."""
    if release < FIRST_WITH_INDEX or platform.startswith("macosx"):
        return ()
    return tuple(
        tag
        for tag in indexes_of(release)
        if platform == _LINUX or build_code(platform, release, tag)
    )


def cuda_of(tag: str) -> str:
    """The CUDA release of an index: 12.6 for cu126."""
    digits = tag.removeprefix("cu")
    return f"{digits[:-1]}.{digits[-1]}"


def tag_of(cuda: str) -> str:
    """The index for a CUDA release: cu126 for 12.6.3."""
    return "cu" + "".join(map(str, release_numbers(cuda)[:2]))
