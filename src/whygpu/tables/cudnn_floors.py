"""The cuDNN release that each TensorFlow release was built with, to its minor number.

The loaded cuDNN has to be of the same major release and at least of the same minor one.
"""

from __future__ import annotations

from typing import NamedTuple

from whygpu.tables.versions import release_numbers

_TESTED = "https://www.tensorflow.org/install/source#gpu"


class CudnnFloor(NamedTuple):
    first: tuple[int, int]
    last: tuple[int, int]
    cudnn: str
    source: str


TENSORFLOW: tuple[CudnnFloor, ...] = (
    CudnnFloor((1, 13), (2, 0), "7.4", _TESTED),
    CudnnFloor((2, 1), (2, 3), "7.6", _TESTED),
    CudnnFloor((2, 4), (2, 4), "8.0", _TESTED),
    CudnnFloor((2, 5), (2, 11), "8.1", _TESTED),
    CudnnFloor((2, 12), (2, 13), "8.6", _TESTED),
    CudnnFloor((2, 14), (2, 14), "8.7", _TESTED),
    CudnnFloor((2, 15), (2, 17), "8.9", _TESTED),
    CudnnFloor((2, 18), (2, 21), "9.3", _TESTED),
)


def cudnn_floor(tensorflow: str) -> str | None:
    """The cuDNN that a TensorFlow release needs at least; None if it is not on record."""
    numbers = release_numbers(tensorflow)[:2]
    return next((row.cudnn for row in TENSORFLOW if row.first <= numbers <= row.last), None)
