"""How frameworks use the GPU of a Mac: through Metal, by themselves or with a plug-in of Apple."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_MPS = "https://docs.pytorch.org/docs/stable/notes/mps.html"
_PLUGIN = "https://pypi.org/project/tensorflow-metal/"
_UP_TO_2_17 = "https://github.com/tensorflow/tensorflow/issues/84167"
_KERAS_3 = "https://github.com/tensorflow/tensorflow/issues/63854"
_JAX_METAL = "https://github.com/jax-ml/jax/issues/34109"


class MetalBuild(NamedTuple):
    """The releases of a package, from `first` to `last`, that can use the GPU of a Mac."""

    package: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    machines: tuple[str, ...]
    """Processors of the Macs: arm64, x86_64."""
    macos: str
    """The oldest macOS that it uses the GPU on."""
    plugin: str
    """The release of tensorflow-metal that it needs; empty if it needs no plug-in."""
    plugin_pythons: tuple[str, ...]
    limit: str
    """What to know about it, as the end of a sentence that starts with the release."""
    source: str


_MPS_LIMIT = "uses the GPU as device 'mps': code that asks for 'cuda' must ask for 'mps'"
_OLD_PLUGIN = "needs tensorflow-metal, Apple's plug-in, which has had no release since January 2025"
_WITH_KERAS_3 = (
    f"{_OLD_PLUGIN}; with Keras 3, models were reported to train wrongly or slowly, and tf-keras "
    f"with TF_USE_LEGACY_KERAS=1 to help ({_KERAS_3})"
)
_PYTHONS = ("3.9", "3.10", "3.11", "3.12")
_FOR_EVER = (9999,)

ROWS: tuple[MetalBuild, ...] = (
    MetalBuild("torch", (1, 12), _FOR_EVER, ("arm64", "x86_64"), "12.3", "", (), _MPS_LIMIT, _MPS),
    *(
        MetalBuild("tensorflow", first, last, ("arm64",), "12.1", plugin, pythons, limit, source)
        for first, last, plugin, pythons, limit, source in (
            ((2, 13), (2, 13, 99), "1.0.0", _PYTHONS[:3], _OLD_PLUGIN, _PLUGIN),
            ((2, 14), (2, 15, 99), "1.1.0", _PYTHONS[:3], _OLD_PLUGIN, _PLUGIN),
            ((2, 16), (2, 17, 99), "1.1.0", _PYTHONS[:3], _WITH_KERAS_3, _UP_TO_2_17),
            # 1.1.0 does not load in 2.18. Apple says that 1.2.0 is for 2.18 and later, but no
            # report of a later one is on record.
            ((2, 18), (2, 18, 99), "1.2.0", _PYTHONS, _WITH_KERAS_3, _PLUGIN),
        )
    ),
)

WITHOUT = {
    "tensorflow": "no release of tensorflow-metal, Apple's plug-in, is on record for it",
    "jax": "jax-metal, Apple's plug-in, is no longer developed and does not work with JAX after "
    f"0.5.0 ({_JAX_METAL})",
    "torch": "its builds for macOS compute on the CPU only",
}
"""Why a release of a framework cannot use the GPU of a Mac if there is no row for it."""
OTHERWISE = "it needs CUDA, which does not support macOS"


def metal_build(package: str, version: str, platform: str) -> MetalBuild | None:
    """The row of a release on a platform (macosx_arm64); None if it cannot use the GPU there."""
    system, _, machine = platform.partition("_")
    numbers = release_numbers(version)
    return next(
        (
            row
            for row in ROWS
            if system == "macosx"
            and row.package == package
            and row.first <= numbers <= row.last
            and machine in row.machines
        ),
        None,
    )


def has_metal_build(package: str) -> bool:
    """Whether any release of a package can use the GPU of a Mac."""
    return any(row.package == package for row in ROWS)
