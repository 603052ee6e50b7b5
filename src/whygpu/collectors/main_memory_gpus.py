"""The memory of GPUs that have none of their own: NVML does not report it, /proc/meminfo does."""

from __future__ import annotations

from whygpu.collectors import memory
from whygpu.host.base import Host
from whygpu.model.driver import Gpu
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.tables.architectures import shares_main_memory


def with_main_memory(host: Host, gpus: Observed[tuple[Gpu, ...]]) -> Observed[tuple[Gpu, ...]]:
    """Other GPUs stay as they are: what a card does not report of its memory is unknown."""
    if not isinstance(gpus, Known) or not any(map(_lacks_figures, gpus.value)):
        return gpus
    found = memory.collect(host)
    total, available = found.total_bytes, found.available_bytes
    if not isinstance(total, Known) or not isinstance(available, Known):
        return gpus
    used = Known(max(total.value - available.value, 0), available.source)
    return Known(
        tuple(
            gpu._replace(memory_total_bytes=total, memory_used_bytes=used)
            if _lacks_figures(gpu)
            else gpu
            for gpu in gpus.value
        ),
        gpus.source,
    )


def _lacks_figures(gpu: Gpu) -> bool:
    return shares_main_memory(gpu) and isinstance(gpu.memory_total_bytes, Unknown)
