"""Frees, after an error, the memory that the failed attempt still holds, and says what is free."""

from __future__ import annotations

import ctypes
import gc
import sys
import traceback
from contextlib import suppress
from typing import Any

_M_MMAP_THRESHOLD = -3
"""Number of an option of glibc's mallopt."""
_MAPPED_FROM = 1 << 20


def release(error: BaseException) -> None:
    """Free what the frames of an error hold, and what the framework keeps for reuse.

    The local variables of the functions that failed hold the step's tensors. The error itself can
    still be raised afterwards, with its message and its line numbers.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        traceback.clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__
    gc.collect()
    _free_to_system()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _free_to_system() -> None:
    """Let the C library of Linux return what is freed, now and from here on.

    Once a program has freed a block of up to 32 MiB, glibc takes blocks of that size from its heap.
    It keeps freed ones there, and the next size of micro-batches leaves gaps between them.
    """
    with suppress(AttributeError, OSError, TypeError):  # Other libraries have no such functions.
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)
        library.malloc_trim(0)


def free_on_gpu() -> int | None:
    """The most bytes that the framework of this process can still give out on its first GPU, if all
    of it were in one piece; None if that is unknown."""
    for name, free in (("torch", _free_for_torch), ("jax", _free_for_jax)):
        found = free() if name in sys.modules else None
        if found is not None:
            return found
    return _free_for_tensorflow()


def _free_for_torch() -> int | None:
    cuda: Any = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return None
    free, total = cuda.mem_get_info()
    part = getattr(cuda, "get_per_process_memory_fraction", lambda: 1.0)()
    return int(min(free + cuda.memory_reserved(), part * total) - cuda.memory_allocated())


def _free_for_jax() -> int | None:
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not getattr(bridge, "_backends", True):
        # Nothing was computed yet, and listing the devices would start them.
        return None
    device: Any = sys.modules["jax"].local_devices()[0]
    stats = device.memory_stats() if device.platform != "cpu" else None
    return stats["bytes_limit"] - stats["bytes_in_use"] if stats else None


def _free_for_tensorflow() -> int | None:
    """Known only if the program, or `whygpu run --memory`, limits the memory of the GPU."""
    eager: Any = sys.modules.get("tensorflow.python.eager.context")
    context = getattr(eager, "_context", None)
    if context is None or not getattr(context, "_initialized", False):
        return None
    config: Any = sys.modules["tensorflow"].config
    gpus = config.list_physical_devices("GPU")
    devices = (config.get_logical_device_configuration(gpus[0]) if gpus else None) or []
    limit = devices[0].memory_limit if devices else None
    if limit is None:
        return None
    return int(limit * (1 << 20) - config.experimental.get_memory_info("GPU:0")["current"])


def add_note(error: BaseException, text: str) -> None:
    """Add a line to an error's message; errors have no place for it before Python 3.11."""
    if hasattr(error, "add_note"):
        error.add_note(f"whygpu: {text}")
