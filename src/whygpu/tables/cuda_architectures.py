"""The GPUs that each CUDA release can build code for."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_ARCHIVE = "https://docs.nvidia.com/cuda/archive/{}/cuda-toolkit-release-notes/index.html"
_NVCC = "https://docs.nvidia.com/cuda/archive/{}/cuda-compiler-driver-nvcc/index.html"
_CUDA_13 = "https://docs.nvidia.com/cuda/archive/13.0.0/cuda-toolkit-release-notes/index.html"


class CudaArchitectures(NamedTuple):
    first: tuple[int, int]
    last: tuple[int, int]
    oldest: tuple[int, int]
    """The lowest compute capability that these releases build for."""
    newest: tuple[int, int]
    source: str


ROWS: tuple[CudaArchitectures, ...] = (
    CudaArchitectures((8, 0), (8, 0), (2, 0), (6, 2), _ARCHIVE.format("8.0")),
    CudaArchitectures((9, 0), (9, 2), (3, 0), (7, 2), _ARCHIVE.format("9.2")),
    CudaArchitectures((10, 0), (10, 2), (3, 0), (7, 5), _ARCHIVE.format("10.2")),
    CudaArchitectures((11, 0), (11, 0), (3, 5), (8, 0), _NVCC.format("11.0")),
    CudaArchitectures((11, 1), (11, 3), (3, 5), (8, 6), _NVCC.format("11.1.0")),
    CudaArchitectures((11, 4), (11, 7), (3, 5), (8, 7), _NVCC.format("11.4.0")),
    CudaArchitectures((11, 8), (11, 8), (3, 5), (9, 0), _NVCC.format("11.8.0")),
    CudaArchitectures((12, 0), (12, 7), (5, 0), (9, 0), _NVCC.format("12.0.0")),
    CudaArchitectures((12, 8), (12, 8), (5, 0), (12, 0), _NVCC.format("12.8.0")),
    CudaArchitectures((12, 9), (12, 9), (5, 0), (12, 1), _NVCC.format("12.9.0")),
    CudaArchitectures((13, 0), (13, 99), (7, 5), (12, 1), _CUDA_13),
)


def built_for(cuda: str) -> CudaArchitectures | None:
    """What a CUDA release can build for; None if it is not on record.

    A version without its minor number ("12") gets the whole range of its major release.
    """
    wanted = release_numbers(cuda)[:2]
    if len(wanted) == 2:
        return next((row for row in ROWS if row.first <= wanted <= row.last), None)
    rows = [row for row in ROWS if wanted and row.first[0] == wanted[0]]
    if not rows:
        return None
    return CudaArchitectures(
        rows[0].first,
        rows[-1].last,
        min(row.oldest for row in rows),
        max(row.newest for row in rows),
        rows[-1].source,
    )
