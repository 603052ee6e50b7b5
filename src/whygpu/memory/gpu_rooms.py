"""The memory that an estimate is compared with: a limit, a GPU by name, or this machine's GPU."""

from __future__ import annotations

from whygpu.errors import Option, UsageError
from whygpu.memory.room import free_of
from whygpu.model.driver import Gpu
from whygpu.model.estimate import MemoryRoom
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.tables import gpu_memory, gpus

_USABLE = 0.99
"""Part of a GPU's nominal memory that programs get: the driver keeps 0.5 % on the H200."""
_MOST_NAMED = 8


def of_limit(amount: int) -> MemoryRoom:
    return MemoryRoom("within the limit", amount, None, "")


def of_name(name: str) -> MemoryRoom:
    """UsageError if the name is unknown, or means models with different memory."""
    models = gpu_memory.named(name)
    if not models:
        raise UsageError(
            "whygpu does not know how much memory it has; give a limit, such as ",
            Option("limit", "24GiB"),
            option="gpu",
            value=name,
        )
    sizes = sorted({size for _, each in models for size in each})
    if len(models) > 1 and len(sizes) > 1:
        named = ", ".join(model for model, _ in models[:_MOST_NAMED])
        raise UsageError(
            f"the name is ambiguous; expected one of {named}", option="gpu", value=name
        )
    note = ""
    if len(sizes) > 1:
        words = [f"{size / (1 << 30):.3g}" for size in sizes]
        note = (
            f"The {models[0][0]} was sold with {', '.join(words[:-1])} and {words[-1]} GB; whygpu "
            f'assumes the smallest. To choose another: --gpu "{name} {words[-1]}GB".'
        )
    found = {model.capability for model in gpus.find(name)}
    capability = found.pop() if len(found) == 1 else None
    return MemoryRoom(f"on the {models[0][0]}", int(sizes[0] * _USABLE), capability, note)


def of_machine(seen: Observed[tuple[Gpu, ...]]) -> Observed[MemoryRoom]:
    """The GPU with the most free memory."""
    if not isinstance(seen, Known):
        return seen
    rooms = [(gpu, free_of(gpu)) for gpu in seen.value]
    free = [(room.value, gpu) for gpu, room in rooms if isinstance(room, Known)]
    if not free:
        # A GPU of unknown memory is not the same as no GPU.
        untold = (room for _, room in rooms if isinstance(room, Unknown))
        return next(untold, Absent("GPU memory in the driver's list"))
    amount, gpu = max(free, key=lambda pair: pair[0])
    name = f"free on GPU {gpu.number}, {gpu.name}"
    return Known(MemoryRoom(name, amount, capability_of(gpu), ""), seen.source)


def capability_of(gpu: Gpu) -> tuple[int, int] | None:
    known = gpu.compute_capability
    major, _, minor = known.value.partition(".") if isinstance(known, Known) else ("", "", "")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None
