"""How much of a GPU's memory each framework takes by default, when, and what changes that.

TensorFlow's figures are those of MinSystemMemory in gpu_device.cc; the published 2.21.0 has these
numbers in its binary. JAX's three quarters, of CUDA's total and not of what is free, and its steps
down by tenths were measured on an NVIDIA H200, driver 580.159.04, with JAX 0.11.
"""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.target import FrameworkName
from whygpu.model.units import GIB, MIB


class MemoryDefault(NamedTuple):
    framework: FrameworkName
    says: str
    """What it does by default, on any machine."""
    changed_by: tuple[str, ...]
    """Its own settings, each in the form that a user writes."""
    use: str
    """How a program of this framework finds out what it really uses; empty if it cannot."""
    source: str


DEFAULTS: tuple[MemoryDefault, ...] = (
    MemoryDefault(
        "tensorflow",
        "nearly all free memory on every GPU it sees, when it starts its devices; it holds this "
        "memory until it exits",
        (
            "TF_FORCE_GPU_ALLOW_GROWTH=true",
            "tf.config.experimental.set_memory_growth(gpu, True)",
            "tf.config.LogicalDeviceConfiguration(memory_limit=4096)",
        ),
        "tf.config.experimental.get_memory_info('GPU:0')",
        "https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth",
    ),
    MemoryDefault(
        "jax",
        "three quarters of the total memory of every GPU it sees, at its first operation; it holds "
        "this memory until it exits",
        (
            "XLA_PYTHON_CLIENT_PREALLOCATE=false",
            "XLA_PYTHON_CLIENT_MEM_FRACTION=.25",
        ),
        "jax.local_devices()[0].memory_stats()",
        "https://docs.jax.dev/en/latest/gpu_memory_allocation.html",
    ),
    MemoryDefault(
        "torch",
        "what it needs, on the GPUs it uses; it keeps freed memory for reuse",
        ("torch.cuda.set_per_process_memory_fraction(0.25)",),
        "torch.cuda.memory_allocated()",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management",
    ),
    MemoryDefault(
        "cupy",
        "what it needs, on the GPUs it uses; it keeps freed memory for reuse",
        ("CUPY_GPU_MEMORY_LIMIT=25%",),
        "cupy.get_default_memory_pool().used_bytes()",
        "https://docs.cupy.dev/en/stable/user_guide/memory.html",
    ),
    MemoryDefault(
        "onnxruntime",
        "what it needs, in blocks that double; it keeps freed memory for reuse",
        ('("CUDAExecutionProvider", {"gpu_mem_limit": 4 << 30})',),
        "",
        "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
    ),
)

ALWAYS_TOLD: tuple[FrameworkName, ...] = ("tensorflow", "jax", "torch")
"""The other frameworks are reported only if they are installed."""

VARIABLES = frozenset(
    (
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TF_GPU_ALLOCATOR",
        "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC",
        "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
        "TF_PER_DEVICE_MEMORY_LIMIT_MB",
        "TF_FORCE_UNIFIED_MEMORY",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
        "XLA_PYTHON_CLIENT_MEM_FRACTION",
        "XLA_CLIENT_MEM_FRACTION",
        "XLA_PYTHON_CLIENT_ALLOCATOR",
        "JAX_PLATFORMS",
    )
)
"""Variables on which the answer depends."""

JAX_FRACTION = 0.75
JAX_COUNTS_THE_TOTAL_SINCE = "0.4.1"
"""Before this release, JAX took a fraction of the free memory:
<https://github.com/jax-ml/jax/releases/tag/jaxlib-v0.4.1>"""
STEP_DOWN = 0.9
"""If the driver refuses, XLA's next request is this fraction of the one before."""

CUDA_CONTEXT = 500 * MIB
"""About what CUDA takes for each process before the framework has anything. It depends on the GPU
and on what is loaded: PyTorch's processes on the H200 had 0.58 GiB beside their tensors."""
LARGEST_OVERHEAD = 2 * GIB
"""More memory than this next to a reservation is not only CUDA's context and libraries."""

_SMALL = 2 * GIB
_LEFT_FREE_OF_SMALL = 225 * MIB
_LEFT_FREE = ((6, 500 * MIB), (7, 1050 * MIB), (8, 1536 * MIB))
"""By the compute capability's first number, up to and including it."""
_LEFT_FREE_OF_NEWER = 1800 * MIB
_LEFT_FREE_BEFORE = (0.05, 300 * MIB)
"""TensorFlow before 2.6: a twentieth or so, and not less than that."""
TENSORFLOW_LOOKS_AT_CAPABILITY_SINCE = "2.6"


def tensorflow_leaves(free: int, capability_major: int | None, *, old: bool) -> int:
    """How much memory TensorFlow leaves free; for an unknown GPU, as for the newest."""
    if free < _SMALL:
        return _LEFT_FREE_OF_SMALL
    if old:
        part, least = _LEFT_FREE_BEFORE
        return max(int(free * part), least)
    if capability_major is not None:
        for major, left in _LEFT_FREE:
            if capability_major <= major:
                return left
    return _LEFT_FREE_OF_NEWER
