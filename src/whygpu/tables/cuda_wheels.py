"""Which wheel on the package index contains which CUDA library."""

from __future__ import annotations

from typing import NamedTuple

_CU11 = "RECORD of the nvidia-*-cu11 wheels on PyPI"
_CU12 = "RECORD of the nvidia-*-cu12 wheels on PyPI"
_CU13 = "https://github.com/unslothai/unsloth/pull/10324"


class CudaWheel(NamedTuple):
    library: str
    """As in lib<library>.so."""
    cuda: int
    """The CUDA major release the wheel belongs to."""
    distribution: str
    source: str


def _suffixed(cuda: int, source: str, **wheels: str) -> tuple[CudaWheel, ...]:
    return tuple(
        CudaWheel(library, cuda, f"nvidia-{wheel}-cu{cuda}", source)
        for library, wheel in wheels.items()
    )


def _plain(cuda: int, source: str, **wheels: str) -> tuple[CudaWheel, ...]:
    return tuple(
        CudaWheel(library, cuda, f"nvidia-{wheel}", source) for library, wheel in wheels.items()
    )


_TOOLKIT = {
    "cudart": "cuda-runtime",
    "cublas": "cublas",
    "cublasLt": "cublas",
    "cufft": "cufft",
    "curand": "curand",
    "cusolver": "cusolver",
    "cusparse": "cusparse",
    "cupti": "cuda-cupti",
    "nvrtc": "cuda-nvrtc",
}

WHEELS: tuple[CudaWheel, ...] = (
    *_suffixed(11, _CU11, **_TOOLKIT, cudnn="cudnn", nccl="nccl"),
    *_suffixed(
        12,
        _CU12,
        **_TOOLKIT,
        nvJitLink="nvjitlink",
        cudnn="cudnn",
        nccl="nccl",
        cusparseLt="cusparselt",
        nvshmem_host="nvshmem",
        cufile="cufile",
    ),
    # With CUDA 13 the toolkit's own libraries lost their suffix; those with releases of their own
    # kept it.
    *_plain(13, _CU13, **_TOOLKIT, nvJitLink="nvjitlink", cufile="cufile"),
    *_suffixed(
        13, _CU13, cudnn="cudnn", nccl="nccl", cusparseLt="cusparselt", nvshmem_host="nvshmem"
    ),
)

_BY_LIBRARY = {(row.library, row.cuda): row.distribution for row in WHEELS}


def wheel_of(library: str, cuda_major: int) -> str | None:
    """The distribution with a library (cusolver) of a CUDA release; None if there is none.

    cuDNN's parts (cudnn_ops, cudnn_cnn) come with cuDNN.
    """
    base = "cudnn" if library.startswith("cudnn_") else library
    return _BY_LIBRARY.get((base, cuda_major))
