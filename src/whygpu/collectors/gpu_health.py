"""Converts what the NVML worker found out about the hardware to the types of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from whygpu.collectors.nvml_worker import FUNCTION_NOT_FOUND
from whygpu.model.driver import FabricState, GpuHealth, PcieLink, RowRepairs, Slowdown
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

_FABRIC: dict[int, FabricState] = {1: "not-started", 2: "in-progress", 3: "joined"}
"""nvmlGpuFabricState_t. The last means that joining has ended; its error says how."""


def gpu_health(facts: dict[str, Any]) -> GpuHealth:
    return GpuHealth(
        vbios=_fact(facts["vbios"], str),
        ecc=_fact(facts["ecc"], bool),
        persistence=_fact(facts["persistence"], bool),
        power_limit_watts=_fact(facts["power_limit"], _watts),
        power_default_watts=_fact(facts["power_default"], _watts),
        max_clock_mhz=_fact(facts["max_clock"], int),
        max_memory_clock_mhz=_fact(facts["max_memory_clock"], int),
        slowdowns=_fact(facts["slowdowns"], slowdowns_of),
        pcie=_fact(facts["pcie"], lambda numbers: PcieLink(*map(int, numbers))),
        rows=_fact(facts["rows"], _rows),
        pages_pending=_fact(facts["pages_pending"], bool),
        nvlinks=_fact(facts["nvlinks"], sum),
        nvlinks_there=_fact(facts["nvlinks"], len),
        mig_layout=_fact(facts["mig_layout"], lambda names: tuple(map(str, names))),
        fabric=_fabric(facts["fabric"]),
    )


def _fabric(fact: dict[str, Any]) -> Observed[FabricState]:
    numbers = _fact(fact, list)
    if not isinstance(numbers, Known):
        return numbers
    state, error = numbers.value
    if state == 0:
        return Absent("NVSwitch of this GPU")
    if state not in _FABRIC:
        return Unknown(f"NVML names an unknown state of the fabric: {state}")
    joins = _FABRIC[state]
    return Known("failed" if joins == "joined" and error else joins, SOURCE)


def _fact(fact: dict[str, Any], read: Callable[[Any], T]) -> Observed[T]:
    if "value" in fact:
        return Known(read(fact["value"]), SOURCE)
    if fact["error"] in _NOT_REPORTED:
        return Absent(f"NVML: {fact['text']}")
    return Unknown(f"NVML: {fact['text']}")


def _watts(milliwatts: int) -> int:
    return round(milliwatts / 1000)


def slowdowns_of(bits: int) -> tuple[Slowdown, ...]:
    """The reasons that NVML gives as bits."""
    return tuple(name for bit, name in _SLOWDOWNS if bits & bit)


def _rows(numbers: list[int]) -> RowRepairs:
    corrected, uncorrected, pending, failed = numbers
    return RowRepairs(corrected, uncorrected, bool(pending), bool(failed))
