"""Names of AMD GPUs as compilers and the ROCm runtime write them.

The kernel writes 100302 for what compilers call gfx1032 and HSA_OVERRIDE_GFX_VERSION calls 10.3.2.
<https://llvm.org/docs/AMDGPUUsage.html#processors>
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"gfx(\d{1,2})([0-9a-f])([0-9a-f])")
_OVERRIDE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{1,2})")


def target_of_number(number: int) -> str:
    """gfx90a for 90010: two decimal digits each for the minor number and the stepping."""
    return _name(number // 10000, number // 100 % 100, number % 100)


def target_of_override(value: str) -> str | None:
    """gfx1030 for 10.3.0, a value of HSA_OVERRIDE_GFX_VERSION; None if it is not one."""
    match = _OVERRIDE.fullmatch(value.strip())
    return _name(int(match[1]), int(match[2]), int(match[3])) if match else None


def _name(major: int, minor: int, stepping: int) -> str:
    return f"gfx{major}{minor:x}{stepping:x}"


def override_for(target: str) -> str | None:
    """The value of HSA_OVERRIDE_GFX_VERSION that stands for a target."""
    match = _NAME.fullmatch(target)
    return f"{match[1]}.{int(match[2], 16)}.{int(match[3], 16)}" if match else None


def generation(target: str) -> int | None:
    """10 for gfx1030: the generation of the instructions. None if it is not a name of one GPU."""
    match = _NAME.fullmatch(target)
    return int(match[1]) if match else None


def is_generic(target: str) -> bool:
    """Code for a whole family (gfx11-generic) and not for one GPU."""
    return target.endswith("-generic")


class Relative(NamedTuple):
    """GPUs that execute the code of a close relative in practice, which AMD does not promise."""

    targets: tuple[str, ...]
    runs: str
    source: str


_ISA = "https://llvm.org/docs/AMDGPUUsage.html#amdgpu-generic-processor-table"

RELATIVES = (
    # Compilers have one generic target for each of these families: their instructions are the same.
    Relative(("gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), "gfx1030", _ISA),
    Relative(("gfx1101", "gfx1102", "gfx1103"), "gfx1100", _ISA),
)


def relative_of(target: str) -> Relative | None:
    return next((row for row in RELATIVES if target in row.targets), None)


class Card(NamedTuple):
    """Graphics cards that are sold under numbers, and what compilers call their GPU.

    Not those of notebooks: an RX 6800M has another GPU than an RX 6800.
    """

    numbers: tuple[str, ...]
    target: str
    source: str


_PROCESSORS = "https://llvm.org/docs/AMDGPUUsage.html#processors"

CARDS = (
    Card(("6600", "6650"), "gfx1032", _PROCESSORS),
    Card(("6700", "6750"), "gfx1031", _PROCESSORS),
    Card(("6800", "6900", "6950"), "gfx1030", _PROCESSORS),
    Card(("7600",), "gfx1102", _PROCESSORS),
    Card(("7700", "7800"), "gfx1101", _PROCESSORS),
    Card(("7900",), "gfx1100", _PROCESSORS),
)


def target_of_card(number: str) -> str | None:
    """gfx1102 for 7600, as in Radeon RX 7600; None if it is not on record."""
    return next((row.target for row in CARDS if number in row.numbers), None)
