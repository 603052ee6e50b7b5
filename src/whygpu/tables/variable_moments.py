"""When a framework reads an environment variable: at its import, or at a later first use.

A variable that a program sets after that moment has no effect. Measured with TensorFlow 2.21.0 and
1.15.5 (2.12.0 and 2.16.2 where a row says so), JAX 0.10.2 and PyTorch 2.13.0 without a GPU, and
with JAX 0.11.2 and PyTorch 2.11.0 on an NVIDIA H200; a row says what was seen. Variables that
still work late have no row.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Moment = Literal[
    "import tensorflow",
    "import keras",
    "import jax",
    "first use of tf.keras",
    "TensorFlow's first look at devices",
    "TensorFlow's first operation",
    "JAX's first use of a device",
    "PyTorch's first use of CUDA",
    "PyTorch's first tensor on the GPU",
]


class VariableMoment(NamedTuple):
    variable: str
    moment: Moment
    seen: str
    """What shows it."""


ROWS: tuple[VariableMoment, ...] = (
    VariableMoment(
        "CUDA_VISIBLE_DEVICES",
        "TensorFlow's first look at devices",
        "set after the import it counts; set after list_physical_devices the GPUs stay visible",
    ),
    VariableMoment(
        "CUDA_DEVICE_ORDER",
        "TensorFlow's first look at devices",
        "CUDA reads it together with CUDA_VISIBLE_DEVICES",
    ),
    VariableMoment(
        "TF_XLA_FLAGS",
        "TensorFlow's first look at devices",
        "an unknown flag ends the program when set before, and goes unnoticed when set after",
    ),
    VariableMoment(
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "TensorFlow's first operation",
        "the GPU device and its allocator are made then, once",
    ),
    VariableMoment(
        "TF_GPU_ALLOCATOR",
        "TensorFlow's first operation",
        "the GPU device and its allocator are made then, once",
    ),
    VariableMoment(
        "TF_PER_DEVICE_MEMORY_LIMIT_MB",
        "TensorFlow's first operation",
        "the GPU device and its allocator are made then, once",
    ),
    VariableMoment(
        "TF_GPU_THREAD_MODE",
        "TensorFlow's first operation",
        "the GPU device and its threads are made then, once",
    ),
    VariableMoment(
        "TF_CPP_MIN_LOG_LEVEL",
        "import tensorflow",
        "2.12, 2.16 and 2.21 log during the import; 2.21 prints the cuInit error in spite of a 3 "
        "that is set after it (1.15 still obeys then)",
    ),
    VariableMoment(
        "TF_ENABLE_ONEDNN_OPTS",
        "import tensorflow",
        "2.21: that oneDNN is on is decided and printed during the import",
    ),
    VariableMoment(
        "TF_USE_LEGACY_KERAS",
        "first use of tf.keras",
        "set after `import tensorflow` it counts; the first tf.keras attribute decides",
    ),
    VariableMoment(
        "KERAS_BACKEND",
        "import keras",
        "a backend that does not exist goes unnoticed when set after the import",
    ),
    VariableMoment(
        "KERAS_BACKEND",
        "import tensorflow",
        "2.21 imports Keras itself: a backend set after it goes unnoticed",
    ),
    VariableMoment(
        "JAX_PLATFORMS",
        "import jax",
        "set to cpu after the import, JAX still computes on the GPU",
    ),
    VariableMoment(
        "JAX_PLATFORM_NAME", "import jax", "read with JAX's other options, at the import"
    ),
    VariableMoment("JAX_ENABLE_X64", "import jax", "set after the import, arrays stay float32"),
    VariableMoment(
        "CUDA_VISIBLE_DEVICES",
        "JAX's first use of a device",
        "set after jax.devices() the GPU stays in use",
    ),
    VariableMoment(
        "XLA_FLAGS",
        "JAX's first use of a device",
        "an unknown flag ends the program when set before, and goes unnoticed when set after",
    ),
    *(
        VariableMoment(
            name,
            "JAX's first use of a device",
            "preallocation switched off after jax.devices(): 107,927 MiB are taken all the same",
        )
        for name in (
            "XLA_PYTHON_CLIENT_PREALLOCATE",
            "XLA_PYTHON_CLIENT_MEM_FRACTION",
            "XLA_PYTHON_CLIENT_ALLOCATOR",
        )
    ),
    VariableMoment(
        "CUDA_VISIBLE_DEVICES",
        "PyTorch's first use of CUDA",
        "set after torch.cuda.is_available() the GPU stays in use, while device_count() says 0",
    ),
    VariableMoment(
        "CUDA_DEVICE_ORDER",
        "PyTorch's first use of CUDA",
        "CUDA reads it together with CUDA_VISIBLE_DEVICES",
    ),
    VariableMoment(
        "CUDA_LAUNCH_BLOCKING",
        "PyTorch's first tensor on the GPU",
        "set after it, a product returns in 0.3 ms instead of 69 ms",
    ),
    *(
        VariableMoment(
            name,
            "PyTorch's first tensor on the GPU",
            "an unknown setting is refused when set before, and goes unnoticed when set after",
        )
        for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    ),
)
SOURCE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars"
