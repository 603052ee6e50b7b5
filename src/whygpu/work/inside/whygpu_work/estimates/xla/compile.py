"""Asks XLA's GPU compiler what a JAX program needs, also on a machine without a GPU.

JAX's CUDA plugin contains the whole compiler. It can compile for a GPU that is only described; what
it decides by trials on the GPU itself stays unknown.
"""

import importlib
import os
import pkgutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = {"xla_gpu_autotune_level": 0}
"""Without a GPU, the compiler cannot make trials."""
CUBLAS = {"xla_gpu_enable_triton_gemm": False}
"""Use cuBLAS for matrix products and not XLA's own kernels; trials decide that, too."""
DEFAULT = (9, 0)
GPUS = {
    # Compute capability: name, processors, threads for each, shared memory for each and for a
    # block, second-level cache, memory per second, memory (all in bytes), clock in GHz.
    (7, 0): ("V100", 80, 2048, 98304, 98304, 6 << 20, 900e9, 16 << 30, 1.53),
    (7, 5): ("T4", 40, 1024, 65536, 65536, 4 << 20, 320e9, 16 << 30, 1.59),
    (8, 0): ("A100", 108, 2048, 167936, 166912, 40 << 20, 2039e9, 80 << 30, 1.41),
    (8, 6): ("RTX 3090", 82, 1536, 102400, 101376, 6 << 20, 936e9, 24 << 30, 1.70),
    (8, 9): ("RTX 4090", 128, 1536, 102400, 101376, 72 << 20, 1008e9, 24 << 30, 2.52),
    (9, 0): ("H200", 132, 2048, 233472, 232448, 50 << 20, 4800e9, 141 << 30, 1.98),
    (10, 0): ("B200", 148, 2048, 233472, 232448, 126 << 20, 8000e9, 180 << 30, 1.96),
    (12, 0): ("RTX 5090", 170, 1536, 102400, 101376, 96 << 20, 1792e9, 32 << 30, 2.41),
}


class Compiler(object):
    """`device` is what programs are compiled for; None where there is no GPU compiler.

    With `host` that is this computer's CPU, which is always there.
    """

    def __init__(self, capability: "tuple[int, int] | None" = None, host: bool = False) -> None:
        self._host = host
        self.capability = capability or DEFAULT
        self.device, self.words, self.without = None, "", ""
        self.tries_things_out = False
        self._find()

    def _find(self) -> None:
        import jax

        if self._host:
            self.device, self.tries_things_out = jax.devices("cpu")[0], True
            self.words = "XLA's compiler, for this computer's CPU"
            return
        for device in jax.devices():
            if device.platform in ("gpu", "cuda"):
                self.device, self.tries_things_out = device, True
                self.words = "XLA's compiler on this machine's %s" % device.device_kind
                return
        try:
            self.device = _without_gpu(self.capability)
            self.words = (
                "XLA's GPU compiler, for an NVIDIA %s that need not be here"
                % (_gpu(self.capability)[0])
            )
        except (ImportError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            self.without = str(error).splitlines()[0]

    def temporary(self, lowered: "Any", thorough: bool) -> "int | None":
        """Bytes that a lowered program needs in addition to its arguments and results.

        `thorough`: compile it for both outcomes of trials that cannot be made here, and return the
        larger result.
        """
        if self.tries_things_out:
            return _temporary(lowered.compile())
        size = _temporary(lowered.compile(compiler_options=OPTIONS))
        if thorough:
            other = lowered.compile(compiler_options=dict(OPTIONS, **CUBLAS))
            size = max(size, _temporary(other))
        return size


def _temporary(compiled: "Any") -> int:
    return int(compiled.memory_analysis().temp_size_in_bytes)


def _without_gpu(capability: "tuple[int, int]") -> "Any":
    """A device that is only described."""
    from jax.experimental import topologies

    described = {"topology": "1x1x1", "target_config": _description(capability)}
    try:
        return topologies.get_topology_desc(platform="cuda", **described).devices[0]
    except NotImplementedError:
        _register_plugin()
    return topologies.get_topology_desc(platform="cuda", **described).devices[0]


def _register_plugin() -> None:
    """Register JAX's CUDA plugin, which JAX ignores if it finds no driver."""
    import jax_plugins

    names = [each.name for each in pkgutil.iter_modules(jax_plugins.__path__)]
    names = [name for name in names if name.startswith("xla_cuda")]
    if not names:
        raise ImportError("JAX's CUDA plugin is not installed")
    # This skips a check of the driver's version.
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    importlib.import_module("jax_plugins." + names[0]).initialize()


def _gpu(capability: "tuple[int, int]") -> "tuple[Any, ...]":
    known = [each for each in GPUS if each <= tuple(capability)]
    return GPUS[max(known) if known else min(GPUS)]


def _description(capability: "tuple[int, int]") -> str:
    """The description of a GPU as XLA's GpuTargetConfigProto."""
    name, processors, threads, shared, shared_block, cache, speed, memory, clock = _gpu(capability)
    return """
        gpu_device_info {
          threads_per_block_limit: 1024
          threads_per_warp: 32
          shared_memory_per_block: 49152
          shared_memory_per_core: %d
          shared_memory_per_block_optin: %d
          threads_per_core_limit: %d
          core_count: %d
          fpus_per_core: 128
          block_dim_limit_x: 2147483647
          block_dim_limit_y: 65535
          block_dim_limit_z: 65535
          memory_bandwidth: %d
          l2_cache_size: %d
          clock_rate_ghz: %.2f
          device_memory_size: %d
          cuda_compute_capability { major: %d minor: %d }
          registers_per_core_limit: 65536
          registers_per_block_limit: 65536
        }
        platform_name: "CUDA"
        dnn_version_info { major: 9 minor: 10 }
        runtime_version { major: 12 minor: 9 }
        device_description_str: "NVIDIA %s"
    """ % (
        (shared, shared_block, threads, processors, speed, cache, clock, memory)
        + tuple(max(min(GPUS), tuple(capability)))
        + (name,)
    )
