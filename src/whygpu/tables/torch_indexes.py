"""For which CUDA releases PyTorch publishes builds, each on a separate package index."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

INDEX_ROOT = "https://download.pytorch.org/whl/"
_PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
_STABLE = "https://download.pytorch.org/whl/torch_stable.html"
_RELEASE_2_12 = "https://github.com/pytorch/pytorch/releases/tag/v2.12.0"


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
)
"""Later releases are not on record."""

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
    return False if number.isdigit() and int(number) < int(newest) else None


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
