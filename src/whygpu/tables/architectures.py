"""Which GPUs run which code: machine code (sm_80) and intermediate code (compute_90)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from whygpu.model.driver import Gpu
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known
from whygpu.model.whole_numbers import whole_number

SOURCES = (
    "https://docs.nvidia.com/cuda/ada-compatibility-guide/index.html",
    "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
)

TEGRA = frozenset({(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
"""Capabilities of the Jetson and Drive chips. NVIDIA does not promise that machine code for other
GPUs runs on these, or the reverse, whatever their numbers say."""

SHARES_MAIN_MEMORY = TEGRA | {(12, 1)}
"""Capabilities of GPUs in one chip with the processor. NVML answers "not supported" for the memory
of the GB10 (12.1): https://docs.nvidia.com/dgx/dgx-spark/known-issues.html"""

Fit = Literal["binary", "compiled", "undocumented", "too-old", "too-new"]
"""How a GPU is served by a set of code: by machine code, by code compiled from PTX on first use,
by machine code that NVIDIA does not promise to run on it, or not at all, because the GPU is older
than all of it or newer than what it could have run."""

_NAME = late(r"(sm|compute)_(\d+)(\d)([af]?)")


class Code(NamedTuple):
    """One kind of GPU code, by its name."""

    binary: bool
    capability: tuple[int, int]
    scope: Literal["", "a", "f"]
    """`a` runs on exactly that capability, `f` on its family (same major, same or higher minor)."""


def parse_code(name: str) -> Code | None:
    """Code by its name (sm_90a, compute_120); None for a name that has another form."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    kind, major, minor, scope = match.groups()
    return Code(
        binary=kind == "sm",
        capability=(int(major), int(minor)),
        scope="a" if scope == "a" else "f" if scope == "f" else "",
    )


def parse_capability(text: str) -> tuple[int, int] | None:
    """A GPU's capability: parse_capability("8.6") is (8, 6)."""
    major, _, minor = map(whole_number, text.partition("."))
    return None if major is None or minor is None else (major, minor)


def shares_main_memory(gpu: Gpu) -> bool:
    """Whether the GPU has no memory and no PCIe link of its own."""
    capability = gpu.compute_capability
    return isinstance(capability, Known) and (
        parse_capability(capability.value) in SHARES_MAIN_MEMORY
    )


def runs(code: Code, gpu: tuple[int, int]) -> bool:
    """Whether a GPU of this capability can use this code, without the exception for Tegra."""
    if code.scope == "a":
        return code.capability == gpu
    if code.binary or code.scope == "f":
        return code.capability[0] == gpu[0] and code.capability <= gpu
    return code.capability <= gpu


def fit(codes: Iterable[Code], gpu: tuple[int, int]) -> Fit:
    """The best that a set of code can do for a GPU."""
    every = tuple(codes)
    usable = [code for code in every if runs(code, gpu)]
    binaries = [code for code in usable if code.binary]
    if any(_promised(code, gpu) for code in binaries):
        return "binary"
    if any(not code.binary for code in usable):
        return "compiled"
    if binaries:
        return "undocumented"
    return "too-old" if all(code.capability > gpu for code in every) else "too-new"


def _promised(code: Code, gpu: tuple[int, int]) -> bool:
    return code.capability == gpu or (code.capability in TEGRA) == (gpu in TEGRA)
