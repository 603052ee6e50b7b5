"""Which wheels for systems other than Linux on x86_64 contain CUDA."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers


class PlatformBuild(NamedTuple):
    """The releases of a package that have CUDA on a platform: from `first` to `last`."""

    package: str
    platform: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    instead: str
    """What to do there, as the end of a sentence."""
    source: str


_TENSORFLOW = "https://www.tensorflow.org/install/pip#windows-native"
_TENSORFLOW_ARM = "https://www.tensorflow.org/install/pip"
_PYTORCH = "https://pytorch.org/get-started/locally/"

_LISTED = "use a build from https://pytorch.org/get-started/previous-versions/"
_INDEX = "install 2.6 or newer from https://download.pytorch.org/whl/ with --index-url"
_ALWAYS, _FOR_EVER = (0,), (9999,)
_NEVER = (_FOR_EVER, _ALWAYS)

ROWS: tuple[PlatformBuild, ...] = (
    PlatformBuild("tensorflow", "win_amd64", _ALWAYS, (2, 10, 99), "use WSL2", _TENSORFLOW),
    PlatformBuild("tensorflow-gpu", "win_amd64", _ALWAYS, (2, 10, 99), "use WSL2", _TENSORFLOW),
    PlatformBuild(
        "tensorflow",
        "linux_aarch64",
        *_NEVER,
        "use NVIDIA's own builds or containers",
        _TENSORFLOW_ARM,
    ),
    PlatformBuild("torch", "win_amd64", *_NEVER, _LISTED, _PYTORCH),
    # Read from the wheels: torch/version.py of 2.10.0 and older says +cpu and no CUDA.
    PlatformBuild("torch", "linux_aarch64", (2, 11), _FOR_EVER, _INDEX, _PYTORCH),
)


def build_without_cuda(package: str, version: str, platform: str) -> PlatformBuild | None:
    """The row that says that a release has no CUDA on a platform; None if nothing says so."""
    return next(
        (
            row
            for row in ROWS
            if row.package == package
            and row.platform == platform
            and not row.first <= release_numbers(version) <= row.last
        ),
        None,
    )
