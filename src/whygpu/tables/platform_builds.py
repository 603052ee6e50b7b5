"""Which wheels for systems other than Linux on x86_64 have CUDA in them."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers


class PlatformBuild(NamedTuple):
    """The last release of a package with CUDA on a platform; None where there never was one."""

    package: str
    platform: str
    last: tuple[int, ...] | None
    instead: str
    """What to do there, as the end of a sentence."""
    source: str


_TENSORFLOW = "https://www.tensorflow.org/install/pip#windows-native"
_TENSORFLOW_ARM = "https://www.tensorflow.org/install/pip"
_PYTORCH = "https://pytorch.org/get-started/locally/"

ROWS: tuple[PlatformBuild, ...] = (
    PlatformBuild("tensorflow", "win_amd64", (2, 10, 99), "use WSL2", _TENSORFLOW),
    PlatformBuild("tensorflow-gpu", "win_amd64", (2, 10, 99), "use WSL2", _TENSORFLOW),
    PlatformBuild(
        "tensorflow",
        "linux_aarch64",
        None,
        "use NVIDIA's own builds or containers",
        _TENSORFLOW_ARM,
    ),
    PlatformBuild(
        "torch",
        "win_amd64",
        None,
        "install from https://download.pytorch.org/whl/ with --index-url",
        _PYTORCH,
    ),
)


def build_without_cuda(package: str, version: str, platform: str) -> PlatformBuild | None:
    """The row that says that a release has no CUDA on a platform; None when nothing says so."""
    return next(
        (
            row
            for row in ROWS
            if row.package == package
            and row.platform == platform
            and (row.last is None or release_numbers(version) > row.last)
        ),
        None,
    )
