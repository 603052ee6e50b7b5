"""The CUDA releases and GPUs that each cuDNN release supports."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_MATRIX_7 = (
    "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn_760/cudnn-support-matrix/index.html"
)
_MATRIX_82 = (
    "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-822/support-matrix/index.html"
)
_MATRIX_89 = (
    "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-891/support-matrix/index.html"
)
_MATRIX_9 = "https://docs.nvidia.com/deeplearning/cudnn/latest/support-matrix/index.html"
_BLACKWELL = "https://github.com/NVIDIA/TransformerEngine/pull/2775"
_DROPPED = "https://aur.archlinux.org/packages/cudnn9.10-cuda12.9"


class CudnnSupport(NamedTuple):
    first: tuple[int, int]
    last: tuple[int, int]
    cuda: tuple[int, ...]
    """CUDA major releases it is published for."""
    oldest: tuple[int, int]
    """The lowest compute capability that it supports."""
    newest: tuple[int, int]
    """The highest one. Convolutions on a newer GPU may fail, even if the framework has PTX."""
    source: str


ROWS: tuple[CudnnSupport, ...] = (
    CudnnSupport((7, 0), (7, 6), (9, 10), (3, 0), (7, 5), _MATRIX_7),
    CudnnSupport((8, 0), (8, 2), (10, 11), (3, 5), (8, 6), _MATRIX_82),
    # Kepler was dropped somewhere in between.
    CudnnSupport((8, 9), (8, 9), (11, 12), (5, 0), (9, 0), _MATRIX_89),
    CudnnSupport((9, 0), (9, 6), (11, 12), (5, 0), (9, 0), _MATRIX_9),
    # 9.7 is the first for Blackwell.
    CudnnSupport((9, 7), (9, 10), (11, 12), (5, 0), (12, 0), _BLACKWELL),
    # 9.10 is the last for Maxwell, Pascal and Volta, and for CUDA 11.
    CudnnSupport((9, 11), (9, 99), (12, 13), (7, 5), (12, 1), _DROPPED),
)


def cudnn_support(cudnn: str) -> CudnnSupport | None:
    """What a cuDNN release supports; None if it is not on record.

    A version without its minor number ("8") is served by what any release of that major one serves.
    """
    wanted = release_numbers(cudnn)[:2]
    if len(wanted) == 2:
        return next((row for row in ROWS if row.first <= wanted <= row.last), None)
    rows = [row for row in ROWS if wanted and row.first[0] == wanted[0]]
    return min(rows, key=lambda row: row.oldest) if rows else None


def newest_gpu(cudnn: str) -> tuple[int, int] | None:
    """The highest compute capability that a cuDNN release supports; None if it is not on record.

    A version without its minor number ("8") may be the newest of that major release.
    """
    wanted = release_numbers(cudnn)[:2]
    if not wanted:
        return None
    rows = [row for row in ROWS if row.first <= wanted <= row.last]
    if len(wanted) == 1:
        rows = [row for row in ROWS if row.first[0] == wanted[0]]
    return max((row.newest for row in rows), default=None)
