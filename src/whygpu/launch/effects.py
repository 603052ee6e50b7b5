"""What each word of a policy means for each framework: variables, and calls inside the program.

Variables wherever there is one, because they reach every process and come before any call. A call
is made by the part of whygpu inside the program (bootstrap/), right after the framework's import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from whygpu.model.observed import Known
from whygpu.model.policy import Action, DevicePolicy, LogLevel, MemoryLimit
from whygpu.model.units import size_text

if TYPE_CHECKING:
    from whygpu.model.snapshot import Snapshot

SEED = 0


class Limit(NamedTuple):
    """What a policy cannot do for some frameworks, to be said where one of them is installed."""

    frameworks: tuple[str, ...]
    text: str
    on_gpu_only: bool = True


Effect = Action | Limit
"""Something that is done, or a note on what cannot be done."""


def effects(
    policy: DevicePolicy, machine: Snapshot | None, environ: Mapping[str, str]
) -> Iterator[Effect]:
    """Everything but the choice of the device. The machine is only needed for its GPUs' memory."""
    if policy.memory is not None:
        yield from _memory(policy.memory, machine, environ)
    if policy.cudnn_off:
        yield from _cudnn_off()
    if policy.deterministic:
        yield from _deterministic(environ)
    if policy.tf32_off:
        yield from _tf32_off()
    if policy.xla_off:
        yield from _xla_off()
    if policy.log_level is not None:
        yield from _log_level(policy.log_level)


def _memory(
    limit: MemoryLimit, machine: Snapshot | None, environ: Mapping[str, str]
) -> Iterator[Effect]:
    if limit.kind == "growth":
        why = "--memory growth: "
        yield Action(
            "set", "TF_FORCE_GPU_ALLOW_GROWTH", "true", f"{why}TensorFlow takes what it needs"
        )
        yield Action(
            "set", "XLA_PYTHON_CLIENT_PREALLOCATE", "false", f"{why}JAX takes what it needs"
        )
        yield Action(
            "keep", "torch", "nothing to change", f"{why}PyTorch always takes what it needs"
        )
        return
    fraction = _fraction(limit, machine)
    said = _said(limit)
    why = f"--memory {said}: "
    yield Action(
        "call",
        "tensorflow",
        f"set_logical_device_configuration({said})",
        f"{why}before its GPUs start",
    )
    yield Action(
        "call", "torch", f"set_per_process_memory_fraction({said})", f"{why}when CUDA starts"
    )
    if fraction is None:
        yield Limit(
            ("jax",),
            f"--memory {said}: JAX takes its limit as a part of the GPU's memory, which the driver "
            "does not tell here; JAX is not limited",
        )
        return
    name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
    if "XLA_CLIENT_MEM_FRACTION" in environ:
        # JAX takes it for an error when both names are set.
        name = "XLA_CLIENT_MEM_FRACTION"
    yield Action("set", name, f"{fraction:.4f}", f"{why}JAX takes this part of each GPU's memory")


def _said(limit: MemoryLimit) -> str:
    if limit.kind == "fraction":
        return f"{limit.amount:.0%}"
    return size_text(limit.amount, digits=4).replace(" ", "")


def _fraction(limit: MemoryLimit, machine: Snapshot | None) -> float | None:
    """The limit as a part of the largest GPU's memory, so that no GPU goes beyond it."""
    if limit.kind == "fraction":
        return limit.amount
    sizes = _sizes(machine)
    return min(limit.amount / max(sizes), 1.0) if sizes else None


def _sizes(machine: Snapshot | None) -> list[int]:
    if machine is None or not isinstance(machine.driver.gpus, Known):
        return []
    sizes = (gpu.memory_total_bytes for gpu in machine.driver.gpus.value)
    return [size.value for size in sizes if isinstance(size, Known) and size.value]


def _cudnn_off() -> Iterator[Effect]:
    why = "--cudnn off: "
    yield Action("call", "torch", "backends.cudnn.enabled = False", f"{why}PyTorch's own kernels")
    yield Action(
        "call",
        "keras",
        "LSTM and GRU layers with use_cudnn=False",
        f"{why}the layers for which Keras has kernels without cuDNN",
    )
    yield Limit(
        ("tensorflow", "jax"),
        "--cudnn off: TensorFlow and JAX have no switch for it; their convolutions go on using "
        "cuDNN on the GPU (--device cpu is the way around it)",
    )


def _deterministic(environ: Mapping[str, str]) -> Iterator[Effect]:
    why = "--deterministic: "
    if "PYTHONHASHSEED" not in environ:
        yield Action("set", "PYTHONHASHSEED", str(SEED), f"{why}sets and dictionaries of strings")
    yield Action("set", "TF_DETERMINISTIC_OPS", "1", f"{why}TensorFlow's kernels")
    yield Action("set", "TF_CUDNN_DETERMINISTIC", "1", f"{why}cuDNN in TensorFlow 1.14 to 2.0")
    yield Action("set", "CUBLAS_WORKSPACE_CONFIG", ":4096:8", f"{why}cuBLAS, as PyTorch demands it")
    # Not as a variable from the start: a release that does not know the flag dies of it.
    yield Action(
        "call",
        "tensorflow, jax",
        "XLA_FLAGS with --xla_gpu_deterministic_ops=true",
        f"{why}XLA, where the release knows the flag",
    )
    yield Action(
        "call",
        "torch",
        "use_deterministic_algorithms(True)",
        f"{why}PyTorch refuses what it cannot repeat",
    )
    yield Action(
        "call",
        "tensorflow, torch, keras, numpy, random",
        f"seed {SEED}",
        f"{why}a program without a seed of its own has one",
    )


def _tf32_off() -> Iterator[Effect]:
    why = "--tf32 off: "
    yield Action("set", "NVIDIA_TF32_OVERRIDE", "0", f"{why}cuBLAS and cuDNN, for every framework")
    yield Action(
        "set", "JAX_DEFAULT_MATMUL_PRECISION", "float32", f"{why}the kernels that XLA makes itself"
    )
    yield Action("call", "torch", "allow_tf32 = False", f"{why}for matrix products and cuDNN")
    yield Action(
        "call", "tensorflow", "enable_tensor_float_32_execution(False)", f"{why}TensorFlow's own"
    )


def _xla_off() -> Iterator[Effect]:
    why = "--xla off: "
    yield Action("add-flag", "TF_XLA_FLAGS", "--tf_xla_auto_jit=-1", f"{why}nothing is clustered")
    yield Action("call", "keras", 'jit_compile="auto" means no', f"{why}Keras compiles on a GPU")
    yield Limit(("jax",), "--xla off: JAX is built on XLA and does not work without it", False)
    yield Limit(
        ("tensorflow",),
        "--xla off: a tf.function with jit_compile=True is compiled all the same",
        False,
    )


_TENSORFLOW_LEVELS: Mapping[LogLevel, str] = {
    "debug": "0",
    "info": "0",
    "warning": "1",
    "error": "2",
    "quiet": "3",
}
_TORCH_LEVELS: Mapping[LogLevel, str] = {
    "debug": "INFO",
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "quiet": "FATAL",
}
_PYTHON_LEVELS: Mapping[LogLevel, str] = {
    "debug": "DEBUG",
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "quiet": "CRITICAL",
}


def _log_level(level: LogLevel) -> Iterator[Effect]:
    why = f"--log-level {level}: "
    native = _TENSORFLOW_LEVELS[level]
    yield Action("set", "TF_CPP_MIN_LOG_LEVEL", native, f"{why}TensorFlow's and JAX's native code")
    if level == "debug":
        yield Action("set", "TF_CPP_VMODULE", "dso_loader=1", f"{why}which libraries are loaded")
    yield Action("set", "TORCH_CPP_LOG_LEVEL", _TORCH_LEVELS[level], f"{why}PyTorch's native code")
    yield Action("set", "JAX_LOGGING_LEVEL", _PYTHON_LEVELS[level], f"{why}JAX's Python code")
    yield Action(
        "call", "tensorflow", f"get_logger().setLevel({_PYTHON_LEVELS[level]})", f"{why}Python code"
    )
