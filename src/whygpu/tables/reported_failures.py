"""Releases that should work on a GPU by what is inside them, and that users report not to work."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.machine_spec import GpuKind
from whygpu.tables.versions import release_numbers

_TENSORFLOW = "https://github.com/tensorflow/tensorflow/issues/"


class ReportedFailure(NamedTuple):
    """Releases of a framework from `first` to `last`, on GPUs from `oldest` to `newest`."""

    framework: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    oldest: tuple[int, int]
    newest: tuple[int, int]
    symptom: str
    """What users saw, or what NVIDIA's pages say, after "is reported not to work on X: "."""
    instead: str
    """What they did instead, as a clause."""
    sources: tuple[str, ...]
    is_certain: bool = True
    """False if the reports are about neighbouring releases, or contradict each other."""
    kind: GpuKind | None = None
    """Only for GPUs of this kind; None for all."""


_ALWAYS, _FOR_EVER = (0,), (9999,)
_ANY_NEWER = (99, 0)
_AMPERE = (8, 0)
_KEPLER = (4, 99)
_LAST_FOR_KEPLER = "1.12 is the last release with an older cuDNN"

ROWS: tuple[ReportedFailure, ...] = (
    ReportedFailure(
        "tensorflow",
        (2, 4),
        (2, 20, 99),
        (12, 0),
        (12, 99),
        "CUDA_ERROR_INVALID_PTX (seen with 2.16 to 2.20)",
        "users took NVIDIA's containers (nvcr.io/nvidia/tensorflow) or built it themselves",
        tuple(f"{_TENSORFLOW}{number}" for number in (89272, 90291, 97387, 99592, 101746)),
    ),
    ReportedFailure(
        "tensorflow",
        (2, 21),
        (2, 21, 99),
        (12, 0),
        (12, 99),
        "XLA stops with \"PTX version 8.5 does not support target 'sm_120'\"",
        "users took NVIDIA's containers (nvcr.io/nvidia/tensorflow) or built it themselves",
        (f"{_TENSORFLOW}111958", f"{_TENSORFLOW}89272"),
        is_certain=False,
    ),
    ReportedFailure(
        "tensorflow",
        _ALWAYS,
        (1, 15, 99),
        _AMPERE,
        _ANY_NEWER,
        "cuBLAS fails (CUBLAS_STATUS_EXECUTION_FAILED)",
        "users took NVIDIA's own builds of 1.15 (nvidia-tensorflow, "
        "https://github.com/NVIDIA/tensorflow#install)",
        (
            "https://github.com/qqwweee/keras-yolo3/issues/332",
            "https://github.com/YudongGuo/AD-NeRF/issues/132",
            "https://github.com/weizhepei/CasRel/issues/62",
        ),
    ),
    ReportedFailure(
        "tensorflow",
        (2, 0),
        (2, 3, 99),
        _AMPERE,
        _ANY_NEWER,
        "cuBLAS fails (CUBLAS_STATUS_NOT_SUPPORTED)",
        "2.4 is the first release for CUDA 11, which supports this GPU",
        ("https://github.com/lengstrom/fast-style-transfer/issues/260",),
    ),
    ReportedFailure(
        "tensorflow",
        _ALWAYS,
        (1, 12, 99),
        (7, 5),
        (7, 5),
        "cuBLAS fails with CUDA 9.0 (but one user says that 1.12 works)",
        "1.13 is the first release for CUDA 10, which supports this GPU",
        (f"{_TENSORFLOW}25274", f"{_TENSORFLOW}24828"),
        is_certain=False,
    ),
    ReportedFailure(
        "torch",
        (1, 0),
        (1, 5, 99),
        _AMPERE,
        _ANY_NEWER,
        "cuDNN and cuBLAS of CUDA 10 fail (CUDNN_STATUS_EXECUTION_FAILED, seen on RTX 30 GPUs)",
        "users took a build for CUDA 11 (PyTorch 1.7 or newer)",
        (
            "https://github.com/zzhang1987/Factor-Graph-Neural-Network/issues/4",
            "https://github.com/uci-cbcl/UFold/issues/20",
            "https://github.com/alexandre01/deepsvg/issues/14",
        ),
    ),
    ReportedFailure(
        "torch",
        (1, 0),
        (1, 1, 99),
        (7, 5),
        (7, 5),
        "cuBLAS of CUDA 9.0 fails",
        "1.2 is the first release for CUDA 10, which supports this GPU",
        ("https://github.com/pytorch/pytorch/issues/16034",),
        is_certain=False,
    ),
    # The builds for CUDA 11.8 still have code for Kepler, but their cuDNN has dropped it.
    ReportedFailure(
        "torch",
        (2, 4),
        _FOR_EVER,
        (0, 0),
        _KEPLER,
        "its cuDNN 9 supports compute capability 5.0 and newer",
        _LAST_FOR_KEPLER,
        ("https://docs.nvidia.com/deeplearning/cudnn/latest/support-matrix/index.html",),
    ),
    ReportedFailure(
        "torch",
        (1, 13),
        (2, 3, 99),
        (0, 0),
        _KEPLER,
        "its cuDNN is 8.3 or newer, and 8.9 no longer supports this GPU",
        _LAST_FOR_KEPLER,
        (
            "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-891/support-matrix/index.html",
        ),
        is_certain=False,
    ),
    # Thor (11.0) uses the libraries of Arm servers. Older ones have libraries of their own.
    *(
        ReportedFailure(
            framework,
            _ALWAYS,
            _FOR_EVER,
            (0, 0),
            (10, 99),
            "the wheels for aarch64 are for Arm servers, and the CUDA of a Jetson is another one",
            "users took the wheels for their JetPack from https://pypi.jetson-ai-lab.io/",
            ("https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1941",),
            kind="jetson",
        )
        for framework in ("tensorflow", "jax", "torch", "cupy", "onnxruntime")
    ),
)


def reported_failure(
    framework: str, version: str, capability: tuple[int, int], kind: GpuKind | None
) -> ReportedFailure | None:
    """The row for a release on a GPU; None if no failure is on record."""
    numbers = release_numbers(version)
    return next(
        (
            row
            for row in ROWS
            if row.framework == framework
            and row.first <= numbers <= row.last
            and row.oldest <= capability <= row.newest
            and row.kind in (None, kind)
        ),
        None,
    )
