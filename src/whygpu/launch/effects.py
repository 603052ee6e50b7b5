"""What each option of a policy means for each framework: variables, calls, and what to expect.

Variables are preferred wherever there is one, because they reach every process and are in place
before any call. A call is made inside the program (bootstrap/), right after the import of the
framework. An expectation says what the framework reports if the option is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from whygpu.launch.gpu_memory import VisibleGpus, limited
from whygpu.model.policy import (
    Action,
    Call,
    DevicePolicy,
    Expectation,
    LogLevel,
    MemoryLimit,
    PolicyPart,
)
from whygpu.model.units import size_text

SEED = 0
DETERMINISTIC_XLA = "--xla_gpu_deterministic_ops=true"
NO_CLUSTERING = "--tf_xla_auto_jit=-1"


class Limit(NamedTuple):
    """What a policy cannot do for some frameworks: a note if one of them is installed."""

    frameworks: tuple[str, ...]
    text: str
    on_gpu_only: bool = True


Effect = Action | Call | Expectation | Limit


class _Option(NamedTuple):
    """One option of the policy, as the reasons name it."""

    part: PolicyPart
    text: str

    def set(self, name: str, value: str, reason: str) -> Action:
        return Action("set", name, value, f"{self.text}: {reason}")

    def call(self, framework: str, name: str, reason: str, **arguments: Any) -> Call:
        return Call(framework, name, arguments, self.part, f"{self.text}: {reason}")

    def expect(self, framework: str, reading: str, wanted: Any) -> Expectation:
        return Expectation(self.part, framework, "equal", reading, wanted)

    def expect_at_most(self, framework: str, reading: str, wanted: Any) -> Expectation:
        return Expectation(self.part, framework, "at-most", reading, wanted)

    def expect_flag(self, framework: str, reading: str, wanted: str) -> Expectation:
        return Expectation(self.part, framework, "contains", reading, wanted)

    def always(self, framework: str, reason: str) -> Expectation:
        return Expectation(self.part, framework, "always", reason=reason)

    def never(self, framework: str, reason: str, *, on_gpu_only: bool = False) -> Expectation:
        return Expectation(self.part, framework, "never", reason=reason, on_gpu_only=on_gpu_only)


def effects(
    policy: DevicePolicy, gpus: VisibleGpus, environ: Mapping[str, str]
) -> Iterator[Effect]:
    """Everything but the choice of the device. `gpus` are those that the program will see."""
    if policy.memory is not None:
        if policy.memory.kind == "growth":
            yield from _growth()
        else:
            yield from _memory(policy.memory, gpus, environ)
    if policy.cudnn_off:
        yield from _cudnn_off()
    if policy.deterministic:
        yield from _deterministic(environ, tf1=policy.tf1)
    if policy.tf32_off:
        yield from _tf32_off()
    if policy.xla_off:
        yield from _xla_off()
    if policy.log_level is not None:
        yield from _log_level(policy.log_level)


def _growth() -> Iterator[Effect]:
    option = _Option("memory", "--memory growth")
    growth, preallocate = "TF_FORCE_GPU_ALLOW_GROWTH", "XLA_PYTHON_CLIENT_PREALLOCATE"
    yield option.set(growth, "true", "TensorFlow takes memory as it needs it")
    yield option.expect("tensorflow", growth, "true")
    yield option.set(preallocate, "false", "JAX takes memory as it needs it")
    yield option.expect("jax", preallocate, "false")
    always = "PyTorch always takes memory as it needs it"
    yield Action("keep", "torch", "nothing to change", f"{option.text}: {always}")
    yield option.always("torch", always)


def _memory(limit: MemoryLimit, gpus: VisibleGpus, environ: Mapping[str, str]) -> Iterator[Effect]:
    amount = _amount(limit)
    option = _Option("memory", f"--memory {amount}")
    found = limited(limit, gpus)
    by_gpu = list(found.bytes_by_gpu)
    yield option.call(
        "tensorflow",
        "set_memory_limit",
        "before its GPUs start",
        bytes=found.bytes,
        bytes_by_gpu=by_gpu,
        fraction=found.fraction,
    )
    yield option.expect_at_most("tensorflow", "memory_limits", by_gpu or found.bytes)
    yield option.expect_at_most("tensorflow", "session_memory_fractions", found.fraction)
    in_bytes = limit.kind == "bytes"
    yield option.call(
        "torch",
        "set_memory_limit",
        "when CUDA starts",
        bytes=int(limit.amount) if in_bytes else None,
        fraction=None if in_bytes else limit.amount,
    )
    if in_bytes:
        yield option.expect_at_most("torch", "memory_limits", found.bytes)
    else:
        yield option.expect_at_most("torch", "memory_fractions", limit.amount)
    if found.fraction is None:
        why = (
            "JAX takes its limit as a fraction of the memory of the GPU, and the size of the GPU "
            "is not known here"
        )
        yield Limit(("jax",), f"{option.text}: {why}; JAX is not limited")
        yield option.never("jax", why, on_gpu_only=True)
        return
    # JAX refuses to start if both names are set.
    user_has = "XLA_CLIENT_MEM_FRACTION" in environ
    name = "XLA_CLIENT_MEM_FRACTION" if user_has else "XLA_PYTHON_CLIENT_MEM_FRACTION"
    value = f"{found.fraction:.4f}"
    yield option.set(name, value, "JAX takes this fraction of the memory of each GPU")
    yield option.expect("jax", name, value)
    if in_bytes or by_gpu:
        yield option.expect_at_most("jax", "memory_limits", by_gpu or found.bytes)
    if found.lowered:
        yield Limit(
            ("jax",),
            f"{option.text}: JAX takes one fraction for all GPUs, and they differ in size; "
            f"{value} is at most {amount} on the largest, and less on the others",
        )


def _amount(limit: MemoryLimit) -> str:
    if limit.kind == "fraction":
        return f"{limit.amount:.0%}"
    return size_text(limit.amount, digits=4).replace(" ", "")


def _cudnn_off() -> Iterator[Effect]:
    option = _Option("cudnn", "--cudnn off")
    yield option.call("torch", "disable_cudnn", "PyTorch uses its own kernels")
    yield option.expect("torch", "cudnn_enabled", False)
    yield option.call(
        "keras", "disable_cudnn", "for LSTM and GRU layers, which have kernels without cuDNN"
    )
    yield option.expect("keras", "use_cudnn", False)
    yield Limit(
        ("tensorflow", "jax"),
        "--cudnn off: TensorFlow and JAX have no switch for cuDNN; their convolutions still use "
        "cuDNN on the GPU (--device cpu avoids it)",
    )
    for framework, title in (("tensorflow", "TensorFlow"), ("jax", "JAX")):
        yield option.never(framework, f"{title} has no switch for cuDNN", on_gpu_only=True)


def _deterministic(environ: Mapping[str, str], *, tf1: bool) -> Iterator[Effect]:
    option = _Option("deterministic", "--deterministic")
    if "PYTHONHASHSEED" not in environ:
        yield option.set("PYTHONHASHSEED", str(SEED), "the order of sets of strings")
    yield option.set("TF_DETERMINISTIC_OPS", "1", "TensorFlow's kernels")
    yield option.expect("tensorflow", "op_determinism", True)
    yield option.set("TF_CUDNN_DETERMINISTIC", "1", "cuDNN in TensorFlow 1.14 to 2.0")
    yield option.set("CUBLAS_WORKSPACE_CONFIG", ":4096:8", "cuBLAS, as PyTorch demands")
    # Not as a variable from the start: a release that does not know the flag aborts.
    for framework in ("tensorflow", "jax"):
        yield option.call(
            framework, "add_xla_flag", "XLA, if the release knows the flag", flag=DETERMINISTIC_XLA
        )
    yield option.expect_flag("jax", "XLA_FLAGS", DETERMINISTIC_XLA)
    yield option.call(
        "torch", "use_deterministic_algorithms", "PyTorch refuses what it cannot repeat"
    )
    yield option.expect("torch", "deterministic_algorithms", True)
    yield option.expect("torch", "cudnn_deterministic", True)
    yield option.expect("torch", "cudnn_benchmark", False)
    if tf1:
        yield option.call(
            "tensorflow", "seed_every_graph", "in TensorFlow 1 each graph has a seed", seed=SEED
        )
    for module in ("tensorflow", "torch", "keras", "numpy.random", "random"):
        yield option.call(
            module, "set_seed", "for a program that sets no seed of its own", seed=SEED
        )


def _tf32_off() -> Iterator[Effect]:
    option = _Option("tf32", "--tf32 off")
    yield option.set("NVIDIA_TF32_OVERRIDE", "0", "cuBLAS and cuDNN, for every framework")
    yield option.set("JAX_DEFAULT_MATMUL_PRECISION", "float32", "the kernels that XLA makes itself")
    yield option.expect("jax", "default_matmul_precision", "float32")
    yield option.call("torch", "disable_tf32", "for matrix products and cuDNN")
    yield option.expect("torch", "matmul_allow_tf32", False)
    yield option.expect("torch", "cudnn_allow_tf32", False)
    yield option.call("tensorflow", "disable_tf32", "TensorFlow's own kernels")
    yield option.expect("tensorflow", "tensor_float_32_execution", False)


def _xla_off() -> Iterator[Effect]:
    option = _Option("xla", "--xla off")
    flags = "TF_XLA_FLAGS"
    yield Action("add-flag", flags, NO_CLUSTERING, f"{option.text}: no automatic clustering")
    # This flag overrides tf.config.optimizer.set_jit(), so get_jit() would say less.
    yield option.expect_flag("tensorflow", flags, NO_CLUSTERING)
    yield option.call("keras", "disable_jit", 'jit_compile="auto" then means no')
    yield option.expect("keras", "model_supports_jit", False)
    yield option.always("torch", "PyTorch does not use XLA")
    yield Limit(("jax",), "--xla off: JAX is built on XLA and does not work without it", False)
    yield option.never("jax", "JAX is built on XLA and does not work without it")
    yield Limit(
        ("tensorflow",),
        "--xla off: a tf.function with jit_compile=True is still compiled",
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
    option = _Option("log-level", f"--log-level {level}")
    native, python = _TENSORFLOW_LEVELS[level], _PYTHON_LEVELS[level]
    code = "TensorFlow's and JAX's native code"
    if level not in ("debug", "info"):
        code += "; during its import, TensorFlow 2.21 writes six lines before it reads this"
    yield option.set("TF_CPP_MIN_LOG_LEVEL", native, code)
    if level == "debug":
        yield option.set("TF_CPP_VMODULE", "dso_loader=1", "which libraries are loaded")
    yield option.set("TORCH_CPP_LOG_LEVEL", _TORCH_LEVELS[level], "PyTorch's native code")
    yield option.set("JAX_LOGGING_LEVEL", python, "JAX's Python code")
    yield option.call("tensorflow", "set_log_level", "TensorFlow's Python code", level=python)
    yield option.expect("tensorflow", "log_level", python)
