"""Packages of conda that decide whether a framework is built for the GPU."""

from __future__ import annotations

from typing import Literal, NamedTuple

_PYTORCH = "https://pytorch.org/get-started/previous-versions/"
_CONDA_FORGE = "https://conda-forge.org/docs/user/tipsandtricks/#installing-cuda-enabled-packages-like-tensorflow-and-pytorch"
_ANACONDA = "https://www.anaconda.com/docs/tools/working-with-conda/applications/tensorflow"

CondaRole = Literal["cpu", "gpu", "solver"]
"""`cpu`: the package is, or brings, the CPU build. `gpu`: the CUDA build. `solver`: conda's solver
chooses one of both, by the GPU driver of the machine on which it runs."""


class CondaBuild(NamedTuple):
    name: str
    framework: str
    role: CondaRole
    gpu_name: str
    """What to ask for instead of a CPU build; empty if the name can stay."""
    source: str


ROWS: tuple[CondaBuild, ...] = (
    CondaBuild("cpuonly", "torch", "cpu", "", _PYTORCH),
    CondaBuild("pytorch-cpu", "torch", "cpu", "pytorch-gpu", _CONDA_FORGE),
    CondaBuild("pytorch-gpu", "torch", "gpu", "", _CONDA_FORGE),
    CondaBuild("pytorch", "torch", "solver", "pytorch-gpu", _CONDA_FORGE),
    CondaBuild("tensorflow-cpu", "tensorflow", "cpu", "tensorflow-gpu", _CONDA_FORGE),
    CondaBuild("tensorflow-mkl", "tensorflow", "cpu", "tensorflow-gpu", _ANACONDA),
    CondaBuild("tensorflow-eigen", "tensorflow", "cpu", "tensorflow-gpu", _ANACONDA),
    CondaBuild("tensorflow-gpu", "tensorflow", "gpu", "", _CONDA_FORGE),
    CondaBuild("tensorflow", "tensorflow", "solver", "tensorflow-gpu", _CONDA_FORGE),
    CondaBuild("jaxlib", "jax", "solver", "", _CONDA_FORGE),
)

PYTORCH_CUDA = {
    "2.5": ("12.4", "12.1", "11.8"),
    "2.4": ("12.4", "12.1", "11.8"),
    "2.3": ("12.1", "11.8"),
    "2.2": ("12.1", "11.8"),
    "2.1": ("12.1", "11.8"),
    "2.0": ("11.8", "11.7"),
    "1.13": ("11.7", "11.6"),
}
"""The releases of pytorch-cuda, which choose the CUDA build in the channel pytorch, for each
release of PyTorch there (see _PYTORCH), from new to old. 2.5 is the last one in that channel."""

_BY_NAME = {row.name: row for row in ROWS}


def conda_build(name: str) -> CondaBuild | None:
    return _BY_NAME.get(name)
