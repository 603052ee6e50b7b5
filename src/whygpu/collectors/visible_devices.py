"""CUDA_VISIBLE_DEVICES, read as the CUDA driver reads it.

NVIDIA documents that entries count up to the first invalid one. The other rules were measured on
driver 580.159.04: a number is read as strtoul reads it, so that text after it is ignored; indices
and UUIDs cannot be mixed; a GPU named twice makes cuInit fail with CUDA_ERROR_INVALID_DEVICE.
<https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
"""

from __future__ import annotations

import re
from collections.abc import Callable

from whygpu.collectors.driver_answer import GpuIds
from whygpu.model.driver import Driver, Gpu
from whygpu.model.environment import GpuSelection, IgnoredEntry
from whygpu.model.observed import Absent, Known, Observed, Unknown

SOURCE = "environment variable CUDA_VISIBLE_DEVICES"

HIDING = ("", "-1", "NoDevFiles", "none", "void")
"""Values that people set to hide every GPU. Slurm sets NoDevFiles for a job without a GPU."""

NUMBER = re.compile(r"\s*([+-]?\d+)", re.ASCII)
LARGEST = (1 << 64) - 1
MOST_DIGITS = len(str(LARGEST))

FULL_UUID = re.compile(
    r"((?:GPU|MIG)-[0-9a-f]{4})[0-9a-f]{4}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)


class Invalid(Exception):
    """The entry names no GPU, so it ends the list."""


Ignored = list[tuple[str, str]]
"""Entries that do not count, each with the reason."""


def shorten(text: str) -> str:
    """Shorten UUIDs, which identify a machine, to a prefix that its owner recognises."""
    return FULL_UUID.sub(r"\1…", text)


def select(text: str, driver: Driver, ids: tuple[GpuIds, ...], device_order: str) -> GpuSelection:
    """Which GPUs the value leaves visible on this machine, and why it hides the others."""
    visible, ignored = _select(text, driver, ids, device_order)
    entries = tuple(IgnoredEntry(shorten(entry), shorten(reason)) for entry, reason in ignored)
    return GpuSelection(shorten(text), visible, entries)


def _select(
    text: str, driver: Driver, ids: tuple[GpuIds, ...], device_order: str
) -> tuple[Observed[tuple[int, ...]], Ignored]:
    if text.strip() in HIDING:
        return Known((), SOURCE), []
    entries = text.split(",")
    gpus = _countable(driver.gpus, ids)
    if isinstance(gpus, Unknown):
        chosen, ignored = _walk(entries[:1], _well_formed)
        return (gpus if chosen else Known((), SOURCE)), ignored
    # The first entry decides the kind of the list.
    if entries[0].startswith("GPU-"):
        chosen, ignored = _walk(entries, lambda entry: _by_uuid(entry, ids))
        return Known(chosen, SOURCE), ignored
    if entries[0].startswith("MIG-"):
        chosen, ignored = _walk(entries[:1], lambda entry: _by_instance(entry, ids))
        ignored += [(entry, "CUDA uses one MIG instance per process") for entry in entries[1:]]
        return Known(chosen, SOURCE), ignored
    chosen, ignored = _walk(entries, lambda entry: _by_index(entry, len(gpus)))
    return _in_bus_order(chosen, gpus, device_order), ignored


def _walk(entries: list[str], read: Callable[[str], int]) -> tuple[tuple[int, ...], Ignored]:
    chosen: list[int] = []
    ignored: Ignored = []
    for position, entry in enumerate(entries):
        try:
            gpu = read(entry)
        except Invalid as reason:
            ignored.append((entry, str(reason)))
            after = f"it comes after {entry!r}, which ends the list"
            ignored += [(later, after) for later in entries[position + 1 :]]
            break
        if gpu in chosen:
            twice = f"{entry!r} names a GPU a second time, which makes CUDA fail to start"
            return (), [(each, twice) for each in entries]
        chosen.append(gpu)
        number = NUMBER.match(entry)
        if number and entry[number.end() :].strip():
            ignored.append((entry[number.end() :], f"CUDA reads only the number of {entry!r}"))
    return tuple(chosen), ignored


def _well_formed(entry: str) -> int:
    """Whether the entry could name a GPU, as far as that can be decided without a driver."""
    if entry.startswith(("GPU-", "MIG-")):
        return 0
    return _index(entry)


def _index(entry: str) -> int:
    number = NUMBER.match(entry)
    if number is None:
        raise Invalid("it is not a number" if entry.strip() else "it is empty")
    digits = number[1].lstrip("+-").lstrip("0") or "0"
    if len(digits) > MOST_DIGITS or int(digits) > LARGEST:
        raise Invalid("the number is too large")
    value = -int(digits) if number[1].startswith("-") else int(digits)
    # The driver keeps the lower 32 bits, as a C int.
    index = (value + (1 << 31)) % (1 << 32) - (1 << 31)
    if index < 0:
        raise Invalid("a negative number ends the list")
    return index


def _by_index(entry: str, count: int) -> int:
    index = _index(entry)
    if index >= count:
        raise Invalid(f"there is no GPU {index}: this machine has {_numbers(count)}")
    return index


def _numbers(count: int) -> str:
    if count == 0:
        return "none"
    return "one GPU, number 0" if count == 1 else f"{count} GPUs, numbers 0 to {count - 1}"


def _by_uuid(entry: str, ids: tuple[GpuIds, ...]) -> int:
    if not entry.startswith("GPU-"):
        raise Invalid("the list began with a UUID, and this is not a UUID")
    if entry == "GPU-":
        raise Invalid("it has no digits")
    wanted = entry.lower()
    # Text after a whole UUID is ignored.
    found = [i for i, gpu in enumerate(ids) if gpu.uuid.lower().startswith(wanted[: len(gpu.uuid)])]
    if len(found) > 1:
        raise Invalid("the UUIDs of several GPUs begin with it")
    if not found:
        raise Invalid("no GPU here has this UUID")
    return found[0]


def _by_instance(entry: str, ids: tuple[GpuIds, ...]) -> int:
    """MIG-<UUID of the instance>, or the older MIG-GPU-<UUID of the GPU>/<instance>/<compute
    instance>."""
    wanted = entry.lower()
    parent = wanted.removeprefix("mig-").partition("/")[0]
    for index, gpu in enumerate(ids):
        if any(uuid.lower().startswith(wanted) for uuid in gpu.mig_uuids):
            return index
        if gpu.mig_uuids and "/" in entry and gpu.uuid.lower() == parent:
            return index
    raise Invalid("no GPU here has this MIG instance")


def _countable(
    gpus: Observed[tuple[Gpu, ...]], ids: tuple[GpuIds, ...]
) -> tuple[Gpu, ...] | Unknown:
    """The GPUs that entries choose from, or why they are unknown."""
    if isinstance(gpus, Absent):
        return Unknown("there is no NVIDIA driver that could list the GPUs")
    if isinstance(gpus, Unknown):
        return gpus
    silent = [str(index) for index, gpu in enumerate(ids) if not gpu.uuid]
    if silent:
        return Unknown(f"GPU {', '.join(silent)} does not answer, and CUDA may not count it")
    return gpus.value


def _in_bus_order(
    chosen: tuple[int, ...], gpus: tuple[Gpu, ...], device_order: str
) -> Observed[tuple[int, ...]]:
    """CUDA's numbers converted to bus order, if that conversion is known."""
    if chosen and len(gpus) > 1 and any(_is_split(gpu) for gpu in gpus):
        return Unknown(
            "some of several GPUs are split by MIG, so that CUDA numbers them differently"
        )
    if chosen and device_order != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1:
        return Unknown(
            "the GPUs are different, and CUDA numbers them by speed unless CUDA_DEVICE_ORDER is "
            "PCI_BUS_ID"
        )
    return Known(chosen, SOURCE)


def _is_split(gpu: Gpu) -> bool:
    return isinstance(gpu.mig, Known) and gpu.mig.value
