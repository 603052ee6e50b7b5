"""Turns what a load test has sent into facts about each GPU. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import TypeVar

from whygpu.collectors.gpu_health import slowdowns_of
from whygpu.model.driver import Gpu, Slowdown
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.stress import (
    PRODUCTS,
    RATES,
    LoadState,
    LoadTest,
    Rate,
    RateName,
    ResultCheck,
    Speeds,
    StressedGpu,
)
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import (
    LoadFramework,
    StressBeginMessage,
    StressEndMessage,
    StressRateMessage,
    StressRefusedMessage,
    StressResultMessage,
    StressStateMessage,
    StressTryMessage,
    TaskMessage,
)
from whygpu.stress.choosing import is_harmless
from whygpu.tables.architectures import shares_main_memory
from whygpu.tables.gpu_speeds import card_peaks, link_peak, peak_of

T = TypeVar("T")

SOURCE = "the test under load"
NVML = "NVML, during the test under load"
_TRANSFERS = ("to-gpu", "from-gpu")


def stressed(gpu: Gpu, framework: LoadFramework, end: TaskEnd) -> StressedGpu:
    """What a task found out about one GPU; unknown if it did not come to it, or not to its end."""
    mine = [each for each in end.messages if getattr(each, "address", "") == gpu.pci_address]
    refused = _of(StressRefusedMessage, mine)
    begun, ended = _of(StressBeginMessage, mine), _of(StressEndMessage, mine)
    if refused:
        return StressedGpu(gpu.number, Unknown(refused[0].reason))
    if not begun:
        return StressedGpu(gpu.number, Unknown(f"the test did not begin: {_how(end)}"))
    reason = "" if ended else f"the test ended before: {_how(end)}"
    test = LoadTest(
        framework=framework,
        version=begun[0].version,
        seconds=round(ended[0].seconds if ended else end.seconds, 2),
        rates=tuple(_rate(name, gpu, _of(StressRateMessage, mine), reason) for name in RATES),
        results=_results(mine, reason),
        state=_state(_of(StressStateMessage, mine)),
        others=_others(gpu, begun[0], _of(StressStateMessage, mine)),
    )
    return StressedGpu(gpu.number, Known(test, SOURCE))


def was_tried(address: str, end: TaskEnd) -> bool:
    """Whether the task came to this GPU, so that another attempt would be the same."""
    return any(
        isinstance(each, StressTryMessage) and each.address == address for each in end.messages
    )


def _how(end: TaskEnd) -> str:
    if end.ended == "timed-out":
        return f"it hung or was too slow, and was stopped after {end.how}"
    return end.how or end.ended


M = TypeVar("M", bound=TaskMessage)


def _of(kind: type[M], messages: Iterable[TaskMessage]) -> list[M]:
    return [each for each in messages if isinstance(each, kind)]


def _rate(name: RateName, gpu: Gpu, messages: Sequence[StressRateMessage], reason: str) -> Rate:
    return Rate(name, _speeds(name, messages, reason), _peak(name, gpu))


def _speeds(name: RateName, messages: Sequence[StressRateMessage], reason: str) -> Observed[Speeds]:
    for message in messages:
        if message.name != name:
            continue
        if any(speed <= 0 for speed in message.per_second):
            return Unknown("a speed of nothing or less was measured")
        if message.per_second:
            ordered = sorted(message.per_second)
            middle = float(median(ordered))
            return Known(Speeds(ordered[0], middle, ordered[-1], len(ordered)), SOURCE)
        return Unknown(message.reason) if message.applies else Absent(message.reason)
    return Unknown(reason or "it was not measured")


def _peak(name: RateName, gpu: Gpu) -> Observed[float]:
    """What to expect of this card. A part of a GPU has a part of it, which no data sheet says."""
    if isinstance(gpu.mig, Known) and gpu.mig.value:
        return Absent("data sheets of MIG instances")
    if name in _TRANSFERS:
        if shares_main_memory(gpu):
            return Absent("a PCIe link between the GPU and main memory")
        health = gpu.health
        link = health.value.pcie if isinstance(health, Known) else health
        if not isinstance(link, Known):
            return link
        expected = link_peak(link.value)
        lanes = f"PCIe {link.value.max_generation} with {link.value.max_width} lanes"
        return Absent(f"the speed of {lanes}") if expected is None else Known(expected, lanes)
    peaks = card_peaks(gpu.name)
    expected = None if peaks is None else peak_of(name, peaks)
    if peaks is None or expected is None:
        return Absent(f"figures for {gpu.name} in whygpu's table of data sheets")
    return Known(expected, peaks.source)


def _results(messages: Sequence[TaskMessage], reason: str) -> tuple[ResultCheck, ...]:
    found = {each.name: each for each in _of(StressResultMessage, messages)}
    measured = {each.name for each in _of(StressRateMessage, messages) if each.per_second}
    return tuple(
        _result(name, found.get(name), reason)
        for name in RATES
        if name in found or name in measured
    )


def _result(name: RateName, message: StressResultMessage | None, reason: str) -> ResultCheck:
    if message is None:
        return ResultCheck(name, Unknown(reason or "it was not checked"), "")
    if message.right is None:
        return ResultCheck(name, Unknown(message.detail), "")
    return ResultCheck(name, Known(message.right, SOURCE), message.detail)


def _state(messages: Sequence[StressStateMessage]) -> LoadState:
    products = [each for each in messages if each.name in PRODUCTS]
    transfers = [each for each in messages if each.name in _TRANSFERS]
    return LoadState(
        clock_mhz=_figure([each.clock_mhz for each in products], lambda all_: int(median(all_))),
        watts=_figure([each.milliwatts for each in messages], lambda all_: round(max(all_) / 1000)),
        celsius=_figure([each.celsius for each in messages], max),
        slowdowns=_figure([each.slowdowns for each in messages], _all_slowdowns),
        pcie_generation=_figure([each.pcie_generation for each in transfers], max),
        pcie_width=_figure([each.pcie_width for each in transfers], max),
    )


def _others(
    gpu: Gpu, begun: StressBeginMessage, states: Sequence[StressStateMessage]
) -> Observed[int]:
    """Who else computed on the GPU: seen by the driver before the test, or counted during it."""
    listed = gpu.processes.value if isinstance(gpu.processes, Known) else ()
    waiting = sum(map(is_harmless, listed))
    counted = [each.processes for each in states if each.processes is not None]
    if not counted and not begun.busy and len(listed) == waiting:
        return Unknown("NVML did not count the processes on the GPU during the test")
    during = max(counted, default=1) - 1 - waiting
    return Known(max(during, len(listed) - waiting, int(bool(begun.busy))), NVML)


def _figure(values: Sequence[int | None], read: Callable[[list[int]], T]) -> Observed[T]:
    known = [value for value in values if value is not None]
    return Known(read(known), NVML) if known else Unknown("NVML reported nothing during the test")


def _all_slowdowns(bits: list[int]) -> tuple[Slowdown, ...]:
    seen = 0
    for each in bits:
        seen |= each
    return slowdowns_of(seen)
