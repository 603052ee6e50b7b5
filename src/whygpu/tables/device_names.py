"""Names that do not exist in the device interface of a framework, and the right names.

A name counts as wrong only where no release has it: TensorFlow's names are those of 1.15.5 and
2.21.0 together, PyTorch's those of 2.13.0. It is corrected where there is a right name for it: the
same word in a neighbouring module, one of the rows below, or one that differs in spelling.
"""

from __future__ import annotations

from functools import lru_cache

from whygpu.tables import torch_names
from whygpu.tables.tensorflow_names import EVER

SOURCE = "https://www.tensorflow.org/api_docs/python/tf/config"

ROWS: dict[str, str] = {
    "tensorflow.errors.CUDAOutOfMemoryError": "tensorflow.errors.ResourceExhaustedError",
    "tensorflow.errors.CudaOutOfMemoryError": "tensorflow.errors.ResourceExhaustedError",
    "tensorflow.errors.OutOfMemoryError": "tensorflow.errors.ResourceExhaustedError",
    "tensorflow.errors.OOMError": "tensorflow.errors.ResourceExhaustedError",
    "tensorflow.config.list_gpus": "tensorflow.config.list_physical_devices",
    "tensorflow.config.list_devices": "tensorflow.config.list_physical_devices",
    "tensorflow.test.is_gpu_avaliable": "tensorflow.test.is_gpu_available",
    "torch.cuda.is_avaliable": "torch.cuda.is_available",
    "torch.cuda.is_availabe": "torch.cuda.is_available",
    "torch.cuda.available": "torch.cuda.is_available",
    "torch.cuda.get_device_count": "torch.cuda.device_count",
    "torch.cuda.num_devices": "torch.cuda.device_count",
    "torch.cuda.clear_cache": "torch.cuda.empty_cache",
    "torch.cuda.OutOfMemory": "torch.cuda.OutOfMemoryError",
    "torch.cuda.is_enabled": "torch.cuda.is_available",
    "torch.is_cuda_available": "torch.cuda.is_available",
    "keras.backend.set_backend": "keras.config.set_backend",
}
"""The right names for those that are not just in the wrong module."""

_CONFIG = "tensorflow.config"
BEFORE: dict[str, str] = {
    **{
        f"{_CONFIG}.{name}": f"{_CONFIG}.experimental.{name}"
        for name in (
            "get_visible_devices",
            "list_logical_devices",
            "list_physical_devices",
            "set_visible_devices",
        )
    },
    f"{_CONFIG}.LogicalDeviceConfiguration": f"{_CONFIG}.experimental.VirtualDeviceConfiguration",
    f"{_CONFIG}.get_logical_device_configuration": (
        f"{_CONFIG}.experimental.get_virtual_device_configuration"
    ),
    f"{_CONFIG}.set_logical_device_configuration": (
        f"{_CONFIG}.experimental.set_virtual_device_configuration"
    ),
}
"""Names that tf.config of TensorFlow 1.14, 1.15 and 2.0 does not have yet, and those that it has.
The old names still exist in 2.21."""

_MODULES = {f"tensorflow.{name}": names for name, names in EVER.items()} | torch_names.MODULES


_SINGULAR = "torch.backend."
_COMPLETE = ("tensorflow.config", "tensorflow.errors")
"""Modules whose names are complete for all releases: a name that is not listed never existed."""


@lru_cache(maxsize=4096)
def right_name(path: str) -> str | None:
    """The right name, or empty, for a name that no release has; None for all others."""
    if path in ROWS:
        return ROWS[path]
    if path.startswith(_SINGULAR):
        return path.replace(_SINGULAR, "torch.backends.", 1)
    module, _, name = path.rpartition(".")
    names = _MODULES.get(module)
    if names is None or name in names or name.startswith("_"):
        return None
    bare = name.removeprefix("experimental_")
    for other in ("tensorflow.config", "tensorflow.config.experimental"):
        if module.startswith("tensorflow.config") and bare in _MODULES[other]:
            return f"{other}.{bare}"
    return _misspelt(module, name)


def _misspelt(module: str, name: str) -> str | None:
    import difflib

    close = difflib.get_close_matches(name, _MODULES[module], n=1, cutoff=0.85)
    if close:
        return f"{module}.{close[0]}"
    return "" if module in _COMPLETE else None


_JAX_OPTIONS = frozenset(
    f"jax_{name}"
    for name in [
        *("platforms", "platform_name", "enable_x64", "disable_jit", "debug_nans", "debug_infs"),
        *("default_device", "default_matmul_precision", "cuda_visible_devices"),
        *("rocm_visible_devices", "num_cpu_devices", "compilation_cache_dir", "log_compiles"),
        *("numpy_dtype_promotion", "numpy_rank_promotion", "threefry_partitionable"),
        *("traceback_filtering", "persistent_cache_min_compile_time_secs"),
    ]
)
"""Options that programs set. Others exist, but none has a name that is as close to one of these."""


def right_jax_option(name: str) -> str:
    """The option of jax.config that a misspelt one stands for; empty if there is none."""
    import difflib

    if not name.startswith("jax_") or name in _JAX_OPTIONS:
        return ""
    close = difflib.get_close_matches(name, _JAX_OPTIONS, n=1, cutoff=0.9)
    return close[0] if close else ""
