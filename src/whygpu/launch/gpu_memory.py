"""A memory limit for the GPUs that a program will see: sizes and fractions, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from whygpu.launch.devices import ORDER, PCI_ORDER, find, gpus_of
from whygpu.model.observed import Known
from whygpu.model.policy import DevicePolicy, MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whygpu.collectors.driver_answer import GpuIds
    from whygpu.model.driver import Gpu
    from whygpu.model.snapshot import Snapshot

_STEPS = 10_000
"""A fraction is given in this many steps, and rounded down."""


class VisibleGpus(NamedTuple):
    """The GPUs that a program will see."""

    sizes: tuple[int | None, ...] = ()
    """Bytes of each; None where the driver does not tell, or the GPU is split (MIG)."""
    in_order: bool = False
    """The first is the program's GPU 0, and so on; false where CUDA's order is not known."""


class LimitedMemory(NamedTuple):
    """A limit as each framework takes it. None: it cannot be computed without the GPU's size."""

    bytes: int | None
    """That exceeds the limit on no GPU."""
    bytes_by_gpu: tuple[int, ...]
    """In the program's order; empty where sizes or order are not known."""
    fraction: float | None
    """Of each GPU's memory, one for all, that exceeds the limit on none."""
    lowered: bool
    """The fraction gives some GPUs less than the limit, because it is one for all."""


def visible_gpus(
    policy: DevicePolicy,
    machine: Snapshot | None,
    ids: Sequence[GpuIds],
    environ: Mapping[str, str],
) -> VisibleGpus:
    """`environ` is the user's: what CUDA_VISIBLE_DEVICES leaves visible is known of that."""
    if machine is None or not isinstance(machine.driver.gpus, Known):
        return VisibleGpus()
    gpus = machine.driver.gpus.value
    if policy.device is not None and policy.device.gpus:
        chosen = find(policy.device.gpus, gpus_of(machine), ids)
        sizes = [None if each.is_instance else _size(gpus[each.number]) for each in chosen]
        return VisibleGpus(tuple(sizes), in_order=True)
    given = machine.environment.visible_gpus
    if isinstance(given, Known):
        visible = given.value.visible
        if isinstance(visible, Known):
            return VisibleGpus(_sizes([gpus[number] for number in visible.value]), in_order=True)
        return VisibleGpus(_sizes(gpus), in_order=False)
    by_bus = environ.get(ORDER) == PCI_ORDER or policy.device is not None
    return VisibleGpus(_sizes(gpus), in_order=by_bus or len(gpus) == 1)


def _sizes(gpus: Sequence[Gpu]) -> tuple[int | None, ...]:
    return tuple(_size(gpu) for gpu in gpus)


def _size(gpu: Gpu) -> int | None:
    if isinstance(gpu.mig, Known) and gpu.mig.value:
        return None
    total = gpu.memory_total_bytes
    return total.value if isinstance(total, Known) and total.value else None


def limited(limit: MemoryLimit, gpus: VisibleGpus) -> LimitedMemory:
    """A limit in bytes, or in a fraction of each GPU's memory, for these GPUs."""
    known = [size for size in gpus.sizes if size is not None]
    complete = bool(known) and len(known) == len(gpus.sizes)
    if limit.kind == "fraction":
        each = tuple(int(limit.amount * size) for size in known)
        return LimitedMemory(
            bytes=min(each) if complete else None,
            bytes_by_gpu=each if complete and gpus.in_order else (),
            fraction=limit.amount,
            lowered=False,
        )
    amount = int(limit.amount)
    fraction = None
    if complete:
        fraction = min(max(amount * _STEPS // max(known), 1) / _STEPS, 1.0)
    lowered = complete and amount < max(known) and min(known) < max(known)
    return LimitedMemory(amount, (), fraction, lowered)
