"""The state of the hardware of each GPU, for the causes that judge a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import NOT_LOOKED, Gpu, GpuHealth
from whygpu.model.finding import Gap
from whygpu.model.observed import Known, NotApplicable, Observed, Unknown, need, need_or
from whygpu.model.snapshot import Snapshot

T = TypeVar("T")


def of_each_gpu(
    machine: Snapshot, what: str, fact: Callable[[GpuHealth], Observed[T]]
) -> Iterator[tuple[Gpu, Known[T]] | Gap]:
    """Each GPU with the fact, if it reports it. `what` names the fact in a gap.

    If no GPU reports it, the cause does not apply: nothing was looked at, so nothing has passed.
    """
    found = list(reported(machine, what, fact))
    if not found:
        raise NotApplicable(f"no GPU reports {what}")
    yield from found


def reported(
    machine: Snapshot, what: str, fact: Callable[[GpuHealth], Observed[T]]
) -> Iterator[tuple[Gpu, Known[T]] | Gap]:
    """The same for a cause that judges several facts: nothing if no GPU reports it.

    A snapshot from before these facts existed has no gap: it says nothing about any machine.
    """
    need(nvidia_gpu(machine))
    for gpu in need_or(machine.driver.gpus, ()):
        value: Observed[T] = fact(gpu.health.value) if isinstance(gpu.health, Known) else gpu.health
        if isinstance(value, Known):
            yield gpu, value
        elif isinstance(value, Unknown) and value != NOT_LOOKED:
            yield Gap(f"{what} of GPU {gpu.number} ({gpu.name}): {value.reason}")
