"""How much GPU memory a framework requests when it starts, by its defaults and variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from whygpu.memory.room import Room
from whygpu.model.holders import Start
from whygpu.model.units import MIB
from whygpu.tables.memory_defaults import (
    CUDA_CONTEXT,
    JAX_COUNTS_THE_TOTAL_SINCE,
    JAX_FRACTION,
    STEP_DOWN,
    TENSORFLOW_LOOKS_AT_CAPABILITY_SINCE,
    tensorflow_leaves,
)
from whygpu.tables.versions import release_numbers


class Demand(NamedTuple):
    start: Start
    why: str
    asks: int | None = None
    """What the framework wants to reserve; None if it reserves nothing."""
    gets: int | None = None
    """About what it would get, or could grow to."""


def demand(framework: str, version: str, variables: Mapping[str, str], room: Room) -> Demand:
    """What a process of this framework would do; without a version, one of the newest releases."""
    if framework == "tensorflow":
        return _tensorflow(version, variables, room)
    if framework == "jax":
        return _jax(version, variables, room)
    return _grows("it keeps freed memory for reuse", room)


def _grows(why: str, room: Room, limit: int | None = None) -> Demand:
    most = max(room.free - CUDA_CONTEXT, 0)
    return Demand("grows", why, None, most if limit is None else min(most, limit))


def _tensorflow(version: str, variables: Mapping[str, str], room: Room) -> Demand:
    cap = _mebibytes(variables, "TF_PER_DEVICE_MEMORY_LIMIT_MB") or None
    allocator = variables.get("TF_GPU_ALLOCATOR", "")
    if allocator in ("cuda_malloc_async", "cuda_malloc"):
        if "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC" in variables:
            return Demand("unknown", "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC decides how much")
        return _grows(f"TF_GPU_ALLOCATOR={allocator} is set", room, cap)
    if variables.get("TF_FORCE_GPU_ALLOW_GROWTH") == "true":
        return _grows("TF_FORCE_GPU_ALLOW_GROWTH=true is set", room, cap)
    asks, why = _tensorflow_asks(version, variables, room)
    if asks <= 0:
        return Demand("fails", "the free memory does not even cover the CUDA context")
    if cap is not None and cap < asks:
        limited = f"TF_PER_DEVICE_MEMORY_LIMIT_MB={cap // MIB} limits it"
        return Demand("reserves", limited, _step_down(asks, cap), _step_down(asks, cap))
    return Demand("reserves", why, asks, asks)


def _tensorflow_asks(version: str, variables: Mapping[str, str], room: Room) -> tuple[int, str]:
    """TensorFlow takes what is free after CUDA has taken its own part."""
    available = room.free - CUDA_CONTEXT
    left = _mebibytes(variables, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB")
    if left is not None and left <= available:
        why = f"it leaves TF_DEVICE_MIN_SYS_MEMORY_IN_MB={left // MIB} free"
        return available - left, why
    old = _is_before(version, TENSORFLOW_LOOKS_AT_CAPABILITY_SINCE)
    left = tensorflow_leaves(available, room.capability_major, old=old)
    why = f"all free memory except the CUDA context and {left // MIB} MiB"
    return (available - left, why) if left < available else (available, "all free memory")


def _jax(version: str, variables: Mapping[str, str], room: Room) -> Demand:
    platforms = variables.get("JAX_PLATFORMS", "")
    if platforms and {"cuda", "gpu"}.isdisjoint(_words(platforms)):
        return Demand("nothing", f"JAX_PLATFORMS={platforms} does not let it use the GPU")
    if variables.get("TF_FORCE_UNIFIED_MEMORY", "").lower() in ("1", "true"):
        return Demand(
            "unknown", "with TF_FORCE_UNIFIED_MEMORY it may take more memory than the GPU has"
        )
    allocator = variables.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    if allocator == "platform":
        return _grows("XLA_PYTHON_CLIENT_ALLOCATOR=platform is set", room)
    if allocator not in ("", "default", "bfc"):
        return Demand("unknown", f"XLA_PYTHON_CLIENT_ALLOCATOR={allocator} decides how much")
    if _is_before(version, JAX_COUNTS_THE_TOTAL_SINCE):
        return Demand(
            "unknown", f"JAX before {JAX_COUNTS_THE_TOTAL_SINCE} computed the amount differently"
        )
    return _jax_part(variables, room)


def _jax_part(variables: Mapping[str, str], room: Room) -> Demand:
    names = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    given = [name for name in names if variables.get(name)]
    if len(given) == 2:
        return Demand("fails", f"{given[0]} and {given[1]} are both set, which JAX refuses")
    part, why = JAX_FRACTION, "75% of the GPU's memory, its default"
    if given:
        text = variables[given[0]]
        why = f"{given[0]}={text}"
        try:
            part = float(text)
        except ValueError:
            return Demand("fails", f"{why} is not a number, and JAX fails on it")
        if not 0 < part <= 1:
            return Demand("unknown", f"{why} is not between 0 and 1")
    asks = int(room.total * part)
    if variables.get("XLA_PYTHON_CLIENT_PREALLOCATE") in ("false", "False", "0"):
        return _grows("XLA_PYTHON_CLIENT_PREALLOCATE=false is set", room, asks)
    gets = _step_down(asks, room.free - CUDA_CONTEXT)
    if gets <= 0:
        return Demand("fails", "the free memory does not even cover the CUDA context", asks, 0)
    return Demand("reserves", why, asks, gets)


def _step_down(asks: int, room: int) -> int:
    """The first of XLA's attempts that fits; 0 if none does."""
    if room <= 0:
        return 0
    tried = asks
    while tried > room:
        tried = int(tried * STEP_DOWN)
    return tried


def _words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}


def _mebibytes(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "").strip()
    return int(text) * MIB if text.isdecimal() else None


def _is_before(version: str, release: str) -> bool:
    return bool(version) and release_numbers(version) < release_numbers(release)
