"""Which distribution contains which module, and which distributions matter to GPU use."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.target import BuildKind, FrameworkName

_TENSORFLOW = "https://www.tensorflow.org/install/pip"
_JAX = "https://docs.jax.dev/en/latest/installation.html"
_CUPY = "https://docs.cupy.dev/en/stable/install.html"
_ONNX = "https://onnxruntime.ai/docs/install/"


class Distribution(NamedTuple):
    """A distribution that contains a framework's module."""

    name: str
    module: str
    """The name in an `import`."""
    framework: FrameworkName
    kind: BuildKind | None
    """The build that this name always means; None if only the files show it."""
    source: str


PROVIDERS: tuple[Distribution, ...] = (
    Distribution("tensorflow", "tensorflow", "tensorflow", None, _TENSORFLOW),
    Distribution("tensorflow-gpu", "tensorflow", "tensorflow", None, _TENSORFLOW),
    Distribution("tensorflow-cpu", "tensorflow", "tensorflow", "cpu", _TENSORFLOW),
    Distribution("tf-nightly", "tensorflow", "tensorflow", None, _TENSORFLOW),
    Distribution("tf-nightly-gpu", "tensorflow", "tensorflow", None, _TENSORFLOW),
    Distribution("tf-nightly-cpu", "tensorflow", "tensorflow", "cpu", _TENSORFLOW),
    Distribution(
        "tensorflow-intel",
        "tensorflow",
        "tensorflow",
        "cpu",
        "https://pypi.org/project/tensorflow-intel/",
    ),
    Distribution(
        "intel-tensorflow",
        "tensorflow",
        "tensorflow",
        "cpu",
        "https://pypi.org/project/intel-tensorflow/",
    ),
    Distribution(
        "intel-tensorflow-avx512",
        "tensorflow",
        "tensorflow",
        "cpu",
        "https://pypi.org/project/intel-tensorflow-avx512/",
    ),
    Distribution(
        "tensorflow-cpu-aws",
        "tensorflow",
        "tensorflow",
        "cpu",
        "https://pypi.org/project/tensorflow-cpu-aws/",
    ),
    Distribution(
        "tensorflow-aarch64",
        "tensorflow",
        "tensorflow",
        "cpu",
        "https://pypi.org/project/tensorflow-aarch64/",
    ),
    Distribution(
        "tensorflow-rocm",
        "tensorflow",
        "tensorflow",
        "rocm",
        "https://pypi.org/project/tensorflow-rocm/",
    ),
    Distribution(
        "tensorflow-macos",
        "tensorflow",
        "tensorflow",
        "cpu",
        "https://developer.apple.com/metal/tensorflow-plugin/",
    ),
    Distribution(
        "nvidia-tensorflow",
        "tensorflow",
        "tensorflow",
        "cuda",
        "https://github.com/NVIDIA/tensorflow",
    ),
    Distribution("keras", "keras", "keras", None, "https://keras.io/getting_started/"),
    Distribution("keras-nightly", "keras", "keras", None, "https://keras.io/getting_started/"),
    Distribution("tf-keras", "tf_keras", "keras", None, "https://pypi.org/project/tf-keras/"),
    Distribution(
        "tf-keras-nightly", "tf_keras", "keras", None, "https://pypi.org/project/tf-keras-nightly/"
    ),
    Distribution("jax", "jax", "jax", None, _JAX),
    Distribution("torch", "torch", "torch", None, "https://pytorch.org/get-started/locally/"),
    Distribution("cupy", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda80", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda90", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda91", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda92", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda100", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda101", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda102", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda110", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda111", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda11x", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda12x", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-cuda13x", "cupy", "cupy", "cuda", _CUPY),
    Distribution("cupy-rocm-4-3", "cupy", "cupy", "rocm", _CUPY),
    Distribution("cupy-rocm-5-0", "cupy", "cupy", "rocm", _CUPY),
    Distribution("cupy-rocm-7-0", "cupy", "cupy", "rocm", _CUPY),
    Distribution("onnxruntime", "onnxruntime", "onnxruntime", None, _ONNX),
    Distribution("onnxruntime-gpu", "onnxruntime", "onnxruntime", "cuda", _ONNX),
    Distribution("onnxruntime-directml", "onnxruntime", "onnxruntime", "directml", _ONNX),
    Distribution("onnxruntime-rocm", "onnxruntime", "onnxruntime", "rocm", _ONNX),
    Distribution("onnxruntime-migraphx", "onnxruntime", "onnxruntime", "rocm", _ONNX),
    Distribution("onnxruntime-openvino", "onnxruntime", "onnxruntime", "other", _ONNX),
    Distribution("onnxruntime-training", "onnxruntime", "onnxruntime", None, _ONNX),
    Distribution("ort-nightly", "onnxruntime", "onnxruntime", None, _ONNX),
    Distribution("ort-nightly-gpu", "onnxruntime", "onnxruntime", "cuda", _ONNX),
    Distribution("numba", "numba", "numba", "cuda", "https://numba.readthedocs.io/"),
)

_SUPPORTING_NAMES = frozenset(
    {
        "h5py",
        "jaxlib",
        "jax-metal",
        "ml-dtypes",
        "numba-cuda",
        "numpy",
        "protobuf",
        "pytorch-triton",
        "pytorch-triton-rocm",
        "tensorflow-metal",
        "tensorrt",
        "torchaudio",
        "torchvision",
        "triton",
    }
)
_SUPPORTING_PREFIXES = ("nvidia-", "jax-cuda", "jax-rocm", "cuda-", "cupy-")

_BY_NAME = {provider.name: provider for provider in PROVIDERS}


def normalised(name: str) -> str:
    """The normalised name of a distribution: lower case, single dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def provider(name: str) -> Distribution | None:
    """The row of a distribution, if it contains a framework."""
    return _BY_NAME.get(name)


def matters(name: str) -> bool:
    """Whether a distribution takes part in GPU use, by its normalised name."""
    return name in _BY_NAME or name in _SUPPORTING_NAMES or name.startswith(_SUPPORTING_PREFIXES)
