"""The one table of readings: what a framework itself reports of the policy at the end of a process.

A reading starts nothing. Where the framework has not started what the reading is about, it raises
NotReached; where the framework cannot be asked, CannotTell. Environment variables are read as the
framework saw them when it started its devices.
"""

import logging
import sys
import warnings

from whygpu_bootstrap import process_record
from whygpu_bootstrap.devices import jax as jax_devices
from whygpu_bootstrap.devices import tensorflow as tensorflow_devices
from whygpu_bootstrap.policy import keras as keras_calls
from whygpu_bootstrap.policy.tensorflow import MIB, logical_devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

LONGEST_REASON = 300


class NotReached(Exception):
    """The framework has not come to what the policy is about; the message says what that is."""


class CannotTell(Exception):
    """The framework does not report it; the message says why."""


def _attribute(value: "Any", path: str) -> "Any":
    for name in path.split("."):
        if not hasattr(value, name):
            raise CannotTell("this release has no %s" % path)
        value = getattr(value, name)
    return value


def _value_of(path: str) -> "Callable[[Any], Any]":
    return lambda module: _attribute(module, path)


def _result_of(path: str) -> "Callable[[Any], Any]":
    return lambda module: _attribute(module, path)()


def _variable(name: str, devices: "Any", not_started: str) -> "Callable[[Any], str | None]":
    def read(module: "Any") -> "str | None":
        if not devices.variables_at_start:
            raise NotReached(not_started)
        return devices.variables_at_start.get(name)

    return read


def _tensorflow_gpu_variable(name: str) -> "Callable[[Any], str | None]":
    def read(tensorflow: "Any") -> "str | None":
        if not tensorflow_devices.started_gpu():
            raise NotReached("TensorFlow did not start a GPU")
        return tensorflow_devices.variables_at_start.get(name)

    return read


def _tensorflow_limits(tensorflow: "Any") -> "list[int | None]":
    """By GPU the bytes that its logical devices may take together; None for all of it."""
    if not tensorflow_devices.started_eager_gpu():
        raise NotReached("TensorFlow did not start a GPU in eager mode")
    get = logical_devices(tensorflow)[0]
    found = []
    for gpu in tensorflow.config.experimental.get_visible_devices("GPU"):
        limits = [each.memory_limit for each in get(gpu) or [None] if each is not None]
        found.append(sum(limits) * MIB if limits and all(limits) else None)
    return found


def _session_fractions(tensorflow: "Any") -> "list[float]":
    if not tensorflow_devices.session_fractions:
        raise NotReached("the program made no session with a GPU")
    return sorted(tensorflow_devices.session_fractions)


def _op_determinism(tensorflow: "Any") -> "Any":
    config = sys.modules.get("tensorflow.python.framework.config")
    return _attribute(config, "is_op_determinism_enabled")()


def _tensorflow_log_level(tensorflow: "Any") -> str:
    return logging.getLevelName(logging.getLogger("tensorflow").level)


def _torch_fractions(torch: "Any") -> "list[float]":
    if not torch.cuda.is_initialized():
        raise NotReached("PyTorch did not start CUDA")
    fraction = _attribute(torch, "cuda.get_per_process_memory_fraction")
    return [fraction(index) for index in range(torch.cuda.device_count())]


def _torch_limits(torch: "Any") -> "list[int]":
    return [
        int(fraction * torch.cuda.get_device_properties(index).total_memory)
        for index, fraction in enumerate(_torch_fractions(torch))
    ]


def _jax_limits(jax: "Any") -> "list[int | None]":
    if not jax_devices.variables_at_start:
        raise NotReached("JAX did not start a GPU")
    found = []
    for device in jax.local_devices():
        stats = None if device.platform == "cpu" else device.memory_stats()
        if stats is not None:
            found.append(stats.get("bytes_limit"))
    if not found:
        raise CannotTell("JAX does not report the memory of its GPUs")
    return found


def _uses_of_cudnn(keras: "Any") -> "Any":
    if not keras_calls.uses_of_cudnn:
        raise NotReached("the program made no LSTM or GRU layer")
    return True if True in keras_calls.uses_of_cudnn else keras_calls.uses_of_cudnn[-1]


def _answers_on_jit(keras: "Any") -> "Any":
    if not keras_calls.answers_on_jit:
        raise NotReached("Keras did not ask whether it can compile a model")
    return keras_calls.answers_on_jit[-1]


def _jax_variable(name: str) -> "Callable[[Any], str | None]":
    return _variable(name, jax_devices, "JAX did not start a GPU")


TABLE = {
    ("tensorflow", "memory_limits"): _tensorflow_limits,
    ("tensorflow", "session_memory_fractions"): _session_fractions,
    ("tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH"): _tensorflow_gpu_variable(
        "TF_FORCE_GPU_ALLOW_GROWTH"
    ),
    ("tensorflow", "TF_XLA_FLAGS"): _variable(
        "TF_XLA_FLAGS", tensorflow_devices, "TensorFlow did not start its devices"
    ),
    ("tensorflow", "op_determinism"): _op_determinism,
    ("tensorflow", "tensor_float_32_execution"): _result_of(
        "config.experimental.tensor_float_32_execution_enabled"
    ),
    ("tensorflow", "log_level"): _tensorflow_log_level,
    ("torch", "memory_limits"): _torch_limits,
    ("torch", "memory_fractions"): _torch_fractions,
    ("torch", "cudnn_enabled"): _value_of("backends.cudnn.enabled"),
    ("torch", "matmul_allow_tf32"): _value_of("backends.cuda.matmul.allow_tf32"),
    ("torch", "cudnn_allow_tf32"): _value_of("backends.cudnn.allow_tf32"),
    ("torch", "deterministic_algorithms"): _result_of("are_deterministic_algorithms_enabled"),
    ("torch", "cudnn_deterministic"): _value_of("backends.cudnn.deterministic"),
    ("torch", "cudnn_benchmark"): _value_of("backends.cudnn.benchmark"),
    ("jax", "memory_limits"): _jax_limits,
    ("jax", "XLA_PYTHON_CLIENT_PREALLOCATE"): _jax_variable("XLA_PYTHON_CLIENT_PREALLOCATE"),
    ("jax", "XLA_PYTHON_CLIENT_MEM_FRACTION"): _jax_variable("XLA_PYTHON_CLIENT_MEM_FRACTION"),
    ("jax", "XLA_CLIENT_MEM_FRACTION"): _jax_variable("XLA_CLIENT_MEM_FRACTION"),
    ("jax", "XLA_FLAGS"): _jax_variable("XLA_FLAGS"),
    ("jax", "default_matmul_precision"): _value_of("config.jax_default_matmul_precision"),
    ("keras", "use_cudnn"): _uses_of_cudnn,
    ("keras", "model_supports_jit"): _answers_on_jit,
}


def start(framework: str, module: "Any", readings: "list[dict[str, Any]]") -> None:
    """Take the readings of the plan for a framework when the process ends."""
    names = [each["name"] for each in readings if each["framework"] == framework]
    if names:
        process_record.readings_at_end(framework, lambda: taken(framework, module, names))


def taken(framework: str, module: "Any", names: "list[str]") -> "list[dict[str, Any]]":
    return [_taken(framework, module, name) for name in names]


def _taken(framework: str, module: "Any", name: str) -> "dict[str, Any]":
    entry = {"framework": framework, "name": name, "status": "reported", "value": None}
    try:
        with warnings.catch_warnings():
            # Some of the names are deprecated in newer releases.
            warnings.simplefilter("ignore")
            entry["value"] = _plain(TABLE[framework, name](module))
    except NotReached as error:
        entry.update(status="not-reached", reason=str(error))
    except CannotTell as error:
        entry.update(status="unknown", reason=str(error))
    except Exception as error:
        reason = "%s: %s" % (type(error).__name__, error)
        entry.update(status="unknown", reason=reason[:LONGEST_REASON])
    return entry


def _plain(value: "Any") -> "Any":
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
