"""The driver's answer, from NVML or from nvidia-smi."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.driver import DriverState, Gpu, GpuPair
from whygpu.model.observed import Observed, Unknown


class GpuIds(NamedTuple):
    """Names under which CUDA_VISIBLE_DEVICES may select one GPU. Never part of a snapshot."""

    uuid: str
    """Empty for a GPU that does not answer."""
    mig_uuids: tuple[str, ...] = ()


class DriverAnswer(NamedTuple):
    state: Observed[DriverState]
    detail: str
    version: Observed[str]
    cuda: Observed[str]
    gpus: Observed[tuple[Gpu, ...]]
    ids: tuple[GpuIds, ...] = ()
    pairs: Observed[tuple[GpuPair, ...]] = Unknown("the driver did not answer")


def bus_address(text: str) -> str:
    """A PCI address as sysfs writes it; NVML writes the domain with eight digits."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
