"""NVIDIA's wheels for the CUDA release that a log shows: nvidia-cudnn-cu11, nvidia-cuda-nvcc-cu12."""

from __future__ import annotations

from whygpu.causes.evidence.log_gpu_generations import cuda_of
from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import LOGS_OF_TENSORFLOW, Log
from whygpu.model.remedy import Install, a_number, shell_script
from whygpu.tables.cuda_wheels import wheel_of
from whygpu.tables.versions import release_numbers

_NUMBERED_AS_CUDA = ("cudart", "cublas", "cublasLt", "nvrtc", "nvJitLink")
"""The libraries whose name has the number of the CUDA release."""
_PACKAGE = late(
    r"\bnvidia[-_][a-z_-]{3,20}[-_]cu(?P<wheel>1[1-9])\b|\bjax[-_]cuda(?P<plugin>1[1-9])\b"
    r"|[/\\]nvidia[/\\]cu(?P<folder>1[3-9])[/\\]"
)
_CUDNN_FOR = {8: (11, 12), 9: (11, 12, 13)}
"""The CUDA releases for which each cuDNN has wheels."""
_FINDS_WHEELS = (2, 14)
"""Older releases of TensorFlow do not search the folders of wheels."""


def cuda_major_in(log: Log) -> int | None:
    """The CUDA major release of the framework; None if the log does not show it."""
    for event in log.libraries:
        if event.component in _NUMBERED_AS_CUDA and event.version:
            # TensorFlow asks for the runtime of its own release, whether or not it is there.
            return release_numbers(event.version)[0]
    cuda = release_numbers(cuda_of(log) or "")
    if cuda:
        return cuda[0]
    match = log.first(_PACKAGE)
    return next((int(text) for text in match.groups.values() if text), None) if match else None


def compiler_wheel(cuda: int) -> str:
    """The wheel with ptxas and libdevice. With CUDA 13 it lost its suffix."""
    return "nvidia-cuda-nvcc" if cuda >= 13 else f"nvidia-cuda-nvcc-cu{cuda}"


def finds_wheels(log: Log) -> bool:
    version = log.version_of("tensorflow") if log.framework in LOGS_OF_TENSORFLOW else None
    return version is None or release_numbers(version) >= _FINDS_WHEELS


def install_cudnn(log: Log, text: str, major: str, versions: str) -> Remedy:
    """Install a cuDNN: its wheel for the CUDA of the log, or conda's package if there is none.

    `versions` follows the name of the wheel: ==9.*
    """
    cuda = cuda_major_in(log)
    number = int(major) if major.isdecimal() else 0
    if not finds_wheels(log) or 0 < number < min(_CUDNN_FOR):
        conda = shell_script(
            "conda install -c conda-forge cudnn=", a_number(major), everywhere=True
        )
        return Remedy(text, conda if major else None)
    if cuda in _CUDNN_FOR.get(number, ()):
        return Remedy(text, Install((f"{wheel_of('cudnn', cuda or 0)}{versions}",)))
    if number in _CUDNN_FOR and cuda is None:
        wanted = versions or f"=={number}.*"
        names = " or ".join(f"nvidia-cudnn-cu{release}{wanted}" for release in _CUDNN_FOR[number])
        return Remedy(f"{text} Its package is {names}, by the CUDA release of the framework.")
    return Remedy(text)
