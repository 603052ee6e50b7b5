"""What a lane used: frameworks, devices, the precision of products, cuDNN."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRAMEWORKS = ("tensorflow", "jax", "torch")
TF32_CAPABILITY = 8
"""The compute capability from which GPUs have TF32."""


class CannotRun(Exception):
    """This program or machine does not have what the lane asks for; the message says why."""

    task_failure = "cannot-run"


def check_backend(backend: "str | None") -> None:
    """Raise CannotRun if the lane did not get its Keras backend."""
    keras = sys.modules.get("keras")
    if backend is None:
        return
    if keras is None:
        raise CannotRun("the program does not use Keras, so that a backend changes nothing")
    found = keras.backend.backend()
    if found != backend:
        raise CannotRun(
            "Keras %s has the backend %s here, whatever KERAS_BACKEND says"
            % (version(keras), found)
        )


def check_options(options: "dict[str, Any]") -> None:
    """Check, after the work, options for which some frameworks have no switch."""
    if "no-cudnn" in options:
        used = cudnn_without_a_switch()
        if used:
            raise CannotRun(used)
    loaded = [name for name in FRAMEWORKS if name in sys.modules]
    if "xla" in options and loaded == ["torch"]:
        raise CannotRun("PyTorch does not compile with XLA")


def cudnn_without_a_switch() -> str:
    """Why the work used cuDNN anyway; empty if it did not, as far as can be seen."""
    names = [name for name in ("tensorflow", "jax") if name in sys.modules]
    keras = sys.modules.get("keras")
    if keras is not None and keras.backend.backend() == "torch":
        # The others were imported only for their tools.
        names = []
    engines = loaded_cudnn_engines()
    if not names or not engines:
        return ""
    return "%s has no switch for cuDNN, and this work uses it (%s was loaded)" % (
        {"tensorflow": "TensorFlow", "jax": "JAX"}[names[-1]],
        engines[0],
    )


def loaded_cudnn_engines() -> "list[str]":
    """Libraries of cuDNN that are loaded only when something is computed with it."""
    found = set()
    try:
        with open("/proc/self/maps") as stream:
            for line in stream:
                name = os.path.basename(line.rstrip("\n"))
                if name.startswith("libcudnn_") and any(part in name for part in _COMPUTING):
                    found.add(name)
    except OSError:
        return []
    return sorted(found)


_COMPUTING = ("engines", "cnn_infer", "cnn_train", "adv_infer", "adv_train")


def version(module: "Any") -> str:
    return str(getattr(module, "__version__", "") or "")


def framework_words(kind: str) -> str:
    """keras 3.15.1 on jax 0.11.0; torch 2.13.0."""
    keras = sys.modules.get("keras")
    if keras is not None and hasattr(keras, "backend") and kind != "torch":
        name = keras.backend.backend()
        return "keras %s on %s %s" % (version(keras), name, version(sys.modules.get(name)))
    loaded = [name for name in ("torch", "jax", "tensorflow") if name in sys.modules]
    return ", ".join("%s %s" % (name, version(sys.modules[name])) for name in loaded)


def gpu_names() -> "list[str]":
    """The names of the GPUs that the frameworks have started; this starts none."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return [torch.cuda.get_device_name(torch.cuda.current_device())]
    if _jax_started():
        devices = sys.modules["jax"].local_devices()
        return sorted({str(each.device_kind) for each in devices if each.platform != "cpu"})
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and hasattr(tensorflow, "config"):
        gpus = tensorflow.config.list_physical_devices("GPU")
        details = [tensorflow.config.experimental.get_device_details(each) for each in gpus]
        return [str(each.get("device_name", "GPU")) for each in details]
    return []


def _jax_started() -> bool:
    bridge = sys.modules.get("jax._src.xla_bridge")
    return "jax" in sys.modules and bool(getattr(bridge, "_backends", None))


def products(device: str, backend: "str | None" = None) -> "str | None":
    """The coarsest precision that settings allow for products of float32 numbers; None: unknown.

    `backend` is the framework that computes; None: the one that is loaded, where it is one.
    """
    loaded = [name for name in FRAMEWORKS if name in sys.modules]
    if backend is None:
        if len(loaded) != 1:
            return None
        backend = loaded[0]
    if device == "cpu":
        return _torch_on_cpu() if backend == "torch" else "float32"
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0" and backend != "jax":
        return "float32"
    return {"torch": _torch_on_gpu, "jax": _jax_on_gpu, "tensorflow": _tensorflow_on_gpu}[backend]()


def _torch_on_cpu() -> str:
    precision = _torch_matmul()
    return "bfloat16" if precision == "medium" else "float32"


def _torch_matmul() -> str:
    import torch

    ask = getattr(torch, "get_float32_matmul_precision", None)
    return ask() if ask is not None else "highest"


def _torch_on_gpu() -> "str | None":
    import torch

    if torch.cuda.get_device_capability()[0] < TF32_CAPABILITY:
        return "float32"
    try:
        convolutions = torch.backends.cudnn.enabled and torch.backends.cudnn.allow_tf32
        products_ = torch.backends.cuda.matmul.allow_tf32
    except RuntimeError:
        # A program that has used both the old and the new names of these settings.
        return None
    if _torch_matmul() == "medium":
        return "bfloat16"
    return "tf32" if convolutions or products_ else "float32"


def _jax_on_gpu() -> str:
    import jax

    precision = jax.config.jax_default_matmul_precision
    if precision in ("float32", "highest"):
        return "float32"
    if precision in ("bfloat16", "fastest"):
        return "bfloat16"
    capability = str(getattr(jax.local_devices()[0], "compute_capability", ""))
    major = capability.partition(".")[0]
    return "float32" if major.isdecimal() and int(major) < TF32_CAPABILITY else "tf32"


def _tensorflow_on_gpu() -> str:
    import tensorflow

    enabled = getattr(tensorflow.config.experimental, "tensor_float_32_execution_enabled", None)
    return "tf32" if enabled is not None and enabled() else "float32"
