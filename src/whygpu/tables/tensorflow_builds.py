"""TensorFlow releases: the CUDA and cuDNN they were built for, and the libraries they load."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_WHEEL = "tensorflow/python/platform/build_info.py and sonames in the wheels on PyPI"
_TABLE = "https://www.tensorflow.org/install/source#gpu"


class TensorflowBuild(NamedTuple):
    """The CUDA and cuDNN of the CUDA builds of a range of minor releases."""

    first: tuple[int, int]
    last: tuple[int, int]
    cuda: str
    cudnn: str
    source: str


BUILDS: tuple[TensorflowBuild, ...] = (
    TensorflowBuild((0, 12), (0, 12), "8.0", "5", _TABLE),
    TensorflowBuild((1, 0), (1, 2), "8.0", "5", _WHEEL),
    TensorflowBuild((1, 3), (1, 4), "8.0", "6", _WHEEL),
    TensorflowBuild((1, 5), (1, 12), "9.0", "7", _WHEEL),
    TensorflowBuild((1, 13), (1, 15), "10.0", "7", _WHEEL),
    TensorflowBuild((2, 0), (2, 0), "10.0", "7", _TABLE),
    TensorflowBuild((2, 1), (2, 3), "10.1", "7", _WHEEL),
    TensorflowBuild((2, 4), (2, 4), "11.0", "8", _WHEEL),
    TensorflowBuild((2, 5), (2, 11), "11.2", "8", _WHEEL),
    TensorflowBuild((2, 12), (2, 14), "11.8", "8", _WHEEL),
    TensorflowBuild((2, 15), (2, 15), "12.2", "8", _WHEEL),
    TensorflowBuild((2, 16), (2, 17), "12.3", "8", _WHEEL),
    TensorflowBuild((2, 18), (2, 21), "12.5.1", "9", _WHEEL),
)


class Load(NamedTuple):
    """A library that TensorFlow opens by name, in which releases, and whether it is required."""

    library: str
    """As in lib<library>.so."""
    first: tuple[int, int]
    last: tuple[int, int]
    required: bool
    source: str


_EVER = (99, 0)
_CHECKER = "TryDlopenCUDALibraries in tensorflow's dlopen_checker.cc"
_OBSERVED = "LD_DEBUG=libs and TF_CPP_VMODULE=dso_loader=1 on TensorFlow 2.21.0"

LOADS: tuple[Load, ...] = (
    # In the order in which they are first opened: the runtime at import, the rest with the devices.
    Load("cudart", (1, 14), _EVER, True, _OBSERVED),
    Load("cuda", (1, 14), _EVER, True, _OBSERVED),
    Load("nvidia-ml", (2, 21), _EVER, True, _OBSERVED),
    Load("cudnn", (2, 21), _EVER, True, _OBSERVED),
    Load("cublas", (1, 14), _EVER, True, _CHECKER),
    Load("cublasLt", (2, 4), _EVER, True, "https://github.com/tensorflow/tensorflow/issues/45848"),
    Load("cufft", (1, 14), _EVER, True, _CHECKER),
    Load("curand", (1, 14), (2, 9), True, _CHECKER),
    # The check was dropped somewhere here; the RUNPATH of the 2.14 wheels has no curand folder.
    Load("curand", (2, 10), (2, 13), False, "RUNPATH of the TensorFlow 2.14.0 wheel on PyPI"),
    Load("cusolver", (1, 14), _EVER, True, _CHECKER),
    Load("cusparse", (1, 14), _EVER, True, _CHECKER),
    Load("cudnn", (1, 14), (2, 20), True, _CHECKER),
)


def build_of(version: str) -> TensorflowBuild | None:
    """The row of a release; None if it is not on record."""
    minor = release_numbers(version)[:2]
    return next((row for row in BUILDS if row.first <= minor <= row.last), None)


def loads_of(version: str) -> tuple[Load, ...]:
    """What this release opens by name, in order; empty for those that link their libraries."""
    minor = release_numbers(version)[:2]
    return tuple(row for row in LOADS if row.first <= minor <= row.last)
