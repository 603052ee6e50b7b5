"""One published release of a package: a row of the release table."""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """One release of one package, for Linux on x86_64 unless `platforms` has only others."""

    package: str
    """The name on the package index, normalised: tensorflow, jax-cuda12-plugin, nvidia-cublas."""
    version: str
    file: str
    """The wheel that the row was read from, and the source of its architectures if that is
    another one."""
    pythons: tuple[str, ...]
    """Python versions with a wheel, sorted: 3.9, 3.10; empty if any Python 3 works."""
    requires_python: str
    """Requires-Python as published; empty if the release does not say."""
    platforms: tuple[str, ...]
    """Platform tags of its wheels: manylinux_2_27_x86_64, win_amd64, macosx_12_0_arm64, any."""
    glibc: str
    """The oldest glibc that its Linux wheels for x86_64 run on; empty if it does not matter."""
    cuda: str
    """The CUDA release it was built for; empty for builds without CUDA."""
    cudnn: str
    architectures: tuple[str, ...]
    """GPU code in its binaries: sm_80, compute_90; empty if there is none or it is not known."""
    requires: tuple[str, ...]
    """Requires-Dist lines that matter to GPU use, extras and markers included."""
    unsearched: tuple[str, ...]
    """Libraries that its own extra installs but its RUNPATH does not search: a defect."""
    unread: str = ""
    """Why the facts of its GPU build (`cuda`, `cudnn`, `architectures`, `unsearched`) are unknown;
    empty if they were read."""
    free_threaded: tuple[str, ...] = ()
    """Python versions with a wheel for their free-threaded build (cp314t): 3.13, 3.14."""

    def pythons_with_wheels(self, *, free_threaded: bool) -> tuple[str, ...]:
        """As builds of Python are named: 3.13, or 3.13t for the free-threaded ones."""
        return tuple(f"{one}t" for one in self.free_threaded) if free_threaded else self.pythons

    def has_wheel_for(self, platform: str) -> bool:
        """Whether one of its wheels is for a platform: linux_x86_64, macosx_arm64, win_amd64."""
        system, _, machine = platform.partition("_")
        prefixes = ("manylinux", "linux") if system == "linux" else (system,)
        return not self.platforms or any(
            tag == "any" or (tag.startswith(prefixes) and tag.endswith((machine, "universal2")))
            for tag in self.platforms
        )

    def glibc_for(self, platform: str) -> str:
        """The oldest glibc that its wheels for a platform run on; empty if it does not matter."""
        if platform == "linux_x86_64":
            return self.glibc
        system, _, machine = platform.partition("_")
        if system != "linux":
            return ""
        floors = [floor for tag in self.platforms if (floor := _glibc_of(tag, machine))]
        return "{}.{}".format(*min(floors)) if floors else ""


_OLD_TAGS = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


def _glibc_of(tag: str, machine: str) -> tuple[int, int] | None:
    """The glibc that a platform tag names: (2, 28) for manylinux_2_28_aarch64."""
    name = tag.removesuffix(f"_{machine}")
    if name == tag:
        return None
    if name in _OLD_TAGS:
        return _OLD_TAGS[name]
    kind, *numbers = name.split("_")
    if kind != "manylinux" or len(numbers) != 2:
        return None
    return int(numbers[0]), int(numbers[1])
