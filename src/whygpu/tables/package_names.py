"""Names that people give to pip for packages that have another name there."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.remedy import PlannedFramework

_TORCH = "https://pypi.org/project/pytorch/"
_TENSORFLOW = "https://www.tensorflow.org/install/pip"
_JAX = "https://docs.jax.dev/en/latest/installation.html"
_NVIDIA = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#pip-wheels"
_CUDNN = "https://docs.nvidia.com/deeplearning/cudnn/installation/latest/"


class OtherName(NamedTuple):
    wrong: str
    right: str
    """The package to install with pip."""
    framework: PlannedFramework | None
    source: str


NAMES: tuple[OtherName, ...] = (
    OtherName("pytorch", "torch", "torch", _TORCH),
    OtherName("pytorch-gpu", "torch", "torch", _TORCH),
    OtherName("pytorch-cuda", "torch", "torch", _TORCH),
    OtherName("torch-gpu", "torch", "torch", _TORCH),
    OtherName("torch-cuda", "torch", "torch", _TORCH),
    OtherName("tensorflow-cuda", "tensorflow[and-cuda]", "tensorflow", _TENSORFLOW),
    OtherName("jax-gpu", "jax[cuda12]", "jax", _JAX),
    OtherName("jax-cuda", "jax[cuda12]", "jax", _JAX),
    OtherName("jax-cuda12", "jax[cuda12]", "jax", _JAX),
    OtherName("cudnn", "nvidia-cudnn-cu12", None, _CUDNN),
    OtherName("cuda", "nvidia-cuda-runtime-cu12", None, _NVIDIA),
    OtherName("cudatoolkit", "nvidia-cuda-runtime-cu12", None, _NVIDIA),
    OtherName("cuda-toolkit-12", "cuda-toolkit", None, _NVIDIA),
)

_BY_WRONG = {row.wrong: row for row in NAMES}


def other_name(name: str) -> OtherName | None:
    """The right name of a package, by its normalised wrong name."""
    return _BY_WRONG.get(name)
