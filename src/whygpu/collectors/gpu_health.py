"""Converts what the NVML worker found out about the hardware to the types of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from whygpu.collectors.nvml_worker import FUNCTION_NOT_FOUND
from whygpu.model.driver import GpuHealth, PcieLink, RowRepairs, Slowdown
from whygpu.model.observed import Absent, Known, Observed, Unknown

T = TypeVar("T")

SOURCE = "NVML"
_INVALID_ARGUMENT = 2
_NOT_SUPPORTED = 3
_NOT_REPORTED = (_INVALID_ARGUMENT, _NOT_SUPPORTED, FUNCTION_NOT_FOUND)
"""This GPU does not have it, or this driver or its bindings are older than the question."""

_SLOWDOWNS: tuple[tuple[int, Slowdown], ...] = (
    (0x40, "thermal"),
    (0x80, "power-brake"),
    (0x08, "hardware"),
    (0x20, "software-thermal"),
    (0x04, "power-cap"),
)
"""Bits of nvmlDeviceGetCurrentClocksThrottleReasons."""


def gpu_health(facts: dict[str, Any]) -> GpuHealth:
    return GpuHealth(
        vbios=_fact(facts["vbios"], str),
        ecc=_fact(facts["ecc"], bool),
        persistence=_fact(facts["persistence"], bool),
        power_limit_watts=_fact(facts["power_limit"], _watts),
        power_default_watts=_fact(facts["power_default"], _watts),
        max_clock_mhz=_fact(facts["max_clock"], int),
        max_memory_clock_mhz=_fact(facts["max_memory_clock"], int),
        slowdowns=_fact(facts["slowdowns"], _slowdowns),
        pcie=_fact(facts["pcie"], lambda numbers: PcieLink(*map(int, numbers))),
        rows=_fact(facts["rows"], _rows),
        pages_pending=_fact(facts["pages_pending"], bool),
        nvlinks=_fact(facts["nvlinks"], int),
        mig_layout=_fact(facts["mig_layout"], lambda names: tuple(map(str, names))),
    )


def _fact(fact: dict[str, Any], read: Callable[[Any], T]) -> Observed[T]:
    if "value" in fact:
        return Known(read(fact["value"]), SOURCE)
    if fact["error"] in _NOT_REPORTED:
        return Absent(f"NVML: {fact['text']}")
    return Unknown(f"NVML: {fact['text']}")


def _watts(milliwatts: int) -> int:
    return round(milliwatts / 1000)


def _slowdowns(bits: int) -> tuple[Slowdown, ...]:
    return tuple(name for bit, name in _SLOWDOWNS if bits & bit)


def _rows(numbers: list[int]) -> RowRepairs:
    corrected, uncorrected, pending, failed = numbers
    return RowRepairs(corrected, uncorrected, bool(pending), bool(failed))
