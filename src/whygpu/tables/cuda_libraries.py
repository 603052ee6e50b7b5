"""The sonames of each CUDA release's libraries: the names that programs request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from whygpu.model.lazy_regex import late

_RELEASE_NOTES = "https://docs.nvidia.com/cuda/archive/{}/cuda-toolkit-release-notes/"


class CudaRelease(NamedTuple):
    """Library name (as in lib<name>.so) to the suffix of its soname, for a range of releases."""

    first: tuple[int, int]
    last: tuple[int, int]
    suffixes: Mapping[str, str]
    source: str


def _all_alike(suffix: str) -> Mapping[str, str]:
    """Up to 10.0 every library of a toolkit has the toolkit's own version."""
    names = ("cudart", "cublas", "cufft", "curand", "cusolver", "cusparse", "cupti", "nvrtc")
    return dict.fromkeys(names, suffix)


RELEASES: tuple[CudaRelease, ...] = (
    CudaRelease(
        (8, 0), (8, 0), _all_alike("8.0"), "DT_NEEDED of tensorflow-gpu 1.2.0 and 1.3.0 on PyPI"
    ),
    CudaRelease((9, 0), (9, 0), _all_alike("9.0"), "DT_NEEDED of tensorflow-gpu 1.12.0 on PyPI"),
    CudaRelease((9, 1), (9, 1), _all_alike("9.1"), _RELEASE_NOTES.format("9.1")),
    CudaRelease((9, 2), (9, 2), _all_alike("9.2"), _RELEASE_NOTES.format("9.2")),
    CudaRelease(
        (10, 0),
        (10, 0),
        _all_alike("10.0"),
        "DT_NEEDED of tensorflow-gpu 1.13.1 on PyPI; dlopen names of tensorflow-gpu 1.15.5",
    ),
    CudaRelease(
        (10, 1),
        (10, 1),
        {
            "cudart": "10.1",
            "cublas": "10",
            "cublasLt": "10",
            "cufft": "10",
            "curand": "10",
            "cusolver": "10",
            "cusparse": "10",
            "cupti": "10.1",
            "nvrtc": "10.1",
        },
        _RELEASE_NOTES.format("10.1"),
    ),
    CudaRelease(
        (10, 2),
        (10, 2),
        {
            "cudart": "10.2",
            "cublas": "10",
            "cublasLt": "10",
            "cufft": "10",
            "curand": "10",
            "cusolver": "10",
            "cusparse": "10",
            "cupti": "10.2",
            "nvrtc": "10.2",
        },
        _RELEASE_NOTES.format("10.2"),
    ),
    CudaRelease(
        (11, 0),
        (11, 0),
        {
            "cudart": "11.0",
            "cublas": "11",
            "cublasLt": "11",
            "cufft": "10",
            "curand": "10",
            "cusolver": "10",
            "cusparse": "11",
            "cupti": "11.0",
            "nvrtc": "11.0",
        },
        "https://github.com/tensorflow/tensorflow/issues/45848",
    ),
    CudaRelease(
        (11, 1),
        (11, 1),
        {
            "cudart": "11.0",
            "cublas": "11",
            "cublasLt": "11",
            "cufft": "10",
            "curand": "10",
            "cusolver": "11",
            "cusparse": "11",
            "cupti": "11.1",
            "nvrtc": "11.1",
        },
        "https://github.com/tensorflow/tensorflow/issues/44777",
    ),
    CudaRelease(
        (11, 2),
        (11, 8),
        {
            "cudart": "11.0",
            "cublas": "11",
            "cublasLt": "11",
            "cufft": "10",
            "curand": "10",
            "cusolver": "11",
            "cusparse": "11",
            "nvrtc": "11.2",
        },
        "file names in the nvidia-*-cu11 wheels on PyPI",
    ),
    CudaRelease(
        (12, 0),
        (12, 9),
        {
            "cudart": "12",
            "cublas": "12",
            "cublasLt": "12",
            "cufft": "11",
            "curand": "10",
            "cusolver": "11",
            "cusparse": "12",
            "cupti": "12",
            "nvrtc": "12",
            "nvJitLink": "12",
        },
        "file names in the nvidia-*-cu12 wheels on PyPI",
    ),
    CudaRelease(
        (13, 0),
        (13, 99),
        {
            "cudart": "13",
            "cublas": "13",
            "cublasLt": "13",
            "cufft": "12",
            "curand": "10",
            "cusolver": "12",
            "cusparse": "12",
            "cupti": "13",
            "nvrtc": "13",
            "nvJitLink": "13",
        },
        "jax_plugins/xla_cuda12/__init__.py in jax-cuda12-pjrt 0.12.0.1, which names both releases",
    ),
)


def soname(library: str, cuda: str) -> str | None:
    """The name to ask the loader for: soname("cublas", "12.5.1") is libcublas.so.12.

    None when the release or the library is not on record. "12" alone stands for any 12.x.
    """
    numbers = cuda.split(".")
    if not all(number.isdecimal() for number in numbers[:2]):
        return None
    wanted = (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else None)
    suffixes = {
        release.suffixes.get(library)
        for release in RELEASES
        if release.first[0] == wanted[0]
        and (wanted[1] is None or release.first[1] <= wanted[1] <= release.last[1])
    }
    if len(suffixes) != 1:
        return None
    (suffix,) = suffixes
    return None if suffix is None else f"lib{library}.so.{suffix}"


def release_with(library: str, suffix: str) -> str:
    """The CUDA release with a library of this soname: "10.1", "11.x"; "" if that is not clear."""
    rows = [row for row in RELEASES if row.suffixes.get(library) == suffix]
    majors = {row.first[0] for row in rows}
    if len(majors) != 1:
        return ""
    if len(rows) == 1 and rows[0].first == rows[0].last:
        return ".".join(map(str, rows[0].first))
    return f"{majors.pop()}.x"


def cudnn_soname(cudnn: str) -> str:
    """cuDNN has its major version in the name: cudnn_soname("9.1") is libcudnn.so.9."""
    return f"libcudnn.so.{cudnn.partition('.')[0]}"


_NVIDIA = late(
    r"lib(cuda|cudart|cudnn\w*|cublas\w*|cufftw?|cufile\w*|curand|cusolver\w*|cusparse\w*|cupti"
    r"|cutensor\w*|cudss\w*|nccl|nvrtc\S*|nvJitLink|nvToolsExt|nvshmem\w*|nvinfer\w*|nvidia-ml"
    r"|custatevec|cutensornet|cudensitymat|nvonnxparser)"
    r"(-[0-9a-f]+)?\.so(\..*)?"
)
"""Wheels that contain their own copies append a part of the file's digest to the name."""


def is_cuda_library(name: str) -> bool:
    """Whether a requested name is one of NVIDIA's libraries."""
    return _NVIDIA.fullmatch(name) is not None
