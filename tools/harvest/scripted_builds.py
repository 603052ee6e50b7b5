"""GPU code of wheels that do not say it where it can be read, from the scripts that built them.

In these the code lies in one library of several hundred megabytes, and nothing smaller names it.
"""

from __future__ import annotations

from typing import NamedTuple

from packaging.version import Version


class ScriptedBuild(NamedTuple):
    """The architectures that a script asked for, for a range of releases."""

    package: str
    first: str
    last: str
    codes: tuple[str, ...]
    source: str


_TORCH = "https://github.com/pytorch/builder/blob/{}/manywheel/build.sh"
_TENSORFLOW = (
    "https://github.com/tensorflow/tensorflow/blob/cc01e36c53b3d0a1fdbf651bf0edf4f3de97acca/"
    "tensorflow/tools/ci_build/release/ubuntu_16/gpu_pip_on_cpu/build.sh"
)
_TENSORFLOW_CODES = tuple(
    f"{kind}_{number}" for kind in ("sm", "compute") for number in (35, 37, 52, 60, 61, 70)
)
"""TF_CUDA_COMPUTE_CAPABILITIES, of which each number then stood for both kinds of code."""

BUILDS: tuple[ScriptedBuild, ...] = (
    ScriptedBuild("tensorflow", "2.0.0", "2.2.3", _TENSORFLOW_CODES, _TENSORFLOW),
    ScriptedBuild(
        "torch",
        "1.0.0",
        "1.1.0",
        ("sm_35", "sm_50", "sm_60", "sm_70", "compute_50"),
        _TORCH.format("e8abd498d5838c54ff8ad1b67a8d3eeabf1dd580"),
    ),
    ScriptedBuild(
        "torch",
        "1.2.0",
        "1.3.0",
        ("sm_35", "sm_50", "sm_60", "sm_61", "sm_70", "sm_75", "compute_50"),
        _TORCH.format("758e54f2aa8b0eb45849316e4edef1c69d90a58f"),
    ),
    ScriptedBuild(
        "torch",
        "1.3.1",
        "1.5.1",
        ("sm_37", "sm_50", "sm_60", "sm_61", "sm_70", "sm_75", "compute_37"),
        _TORCH.format("a8c085bb4b4901c9d3e9a2b67dc1c539cd24ae11"),
    ),
)


def scripted_build(package: str, version: str) -> ScriptedBuild | None:
    """The row of a release; None where its wheel itself is read."""
    wanted = Version(version)
    return next(
        (
            build
            for build in BUILDS
            if build.package == package and Version(build.first) <= wanted <= Version(build.last)
        ),
        None,
    )
