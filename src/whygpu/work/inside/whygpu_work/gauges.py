"""The memory of this process now and at its peak, from each framework and from the kernel."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def device_memory() -> "dict[str, Any] | None":
    """GPU memory in bytes as the frameworks that are started count it; None without a GPU.

    `peak` is what was in use at most, `reserved` what the allocator held at most for it.
    """
    found = [each for each in (_torch(), _jax(), _tensorflow()) if each is not None]
    if not found:
        return None
    return {key: sum(each.get(key) or 0 for each in found) for key in ("now", "peak", "reserved")}


def reset_peak() -> None:
    """Reset the peaks of the frameworks that support it, and the kernel's peak of main memory."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()
    tensorflow: "Any" = sys.modules.get("tensorflow")
    for name in tensorflow_gpus(tensorflow):
        tensorflow.config.experimental.reset_memory_stats(name)
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")
    except OSError:
        # Not permitted, or not Linux: the peak is that since the start of the process.
        pass


def host_memory() -> "dict[str, Any] | None":
    """Resident memory now and at its peak, in bytes; None if it is unknown."""
    sizes = {}
    try:
        with open("/proc/self/status") as stream:
            for line in stream:
                name, _, rest = line.partition(":")
                if name in ("VmRSS", "VmHWM"):
                    sizes[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    if len(sizes) < 2:
        return None
    return {"now": sizes["VmRSS"], "peak": sizes["VmHWM"], "pid": os.getpid()}


def _torch() -> "dict[str, int] | None":
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return {
        "now": torch.cuda.memory_allocated(),
        "peak": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }


def _jax() -> "dict[str, int] | None":
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and not getattr(bridge, "_backends", True):
        # Nothing has been computed, and asking for the devices would start them.
        return None
    stats = [device.memory_stats() for device in jax.local_devices() if device.platform != "cpu"]
    stats = [each for each in stats if each]
    if not stats:
        return None
    return {
        "now": sum(each["bytes_in_use"] for each in stats),
        "peak": sum(each["peak_bytes_in_use"] for each in stats),
        "reserved": sum(each.get("pool_bytes") or 0 for each in stats),
    }


def tensorflow_gpus(tensorflow: "Any") -> "list[str]":
    """Names of the GPUs that TensorFlow has started; asking must not start them."""
    if tensorflow is None or not hasattr(tensorflow, "config"):
        return []
    from tensorflow.python.eager import context

    if not context.context()._initialized:
        return []
    return ["GPU:%d" % i for i in range(len(tensorflow.config.list_logical_devices("GPU")))]


def _tensorflow() -> "dict[str, int] | None":
    tensorflow: "Any" = sys.modules.get("tensorflow")
    names = tensorflow_gpus(tensorflow)
    if not names:
        return None
    infos = [tensorflow.config.experimental.get_memory_info(name) for name in names]
    return {
        "now": sum(each["current"] for each in infos),
        "peak": sum(each["peak"] for each in infos),
        "reserved": 0,
    }
