"""The table of wheels is sound, and names wheels that exist."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.cuda_libraries import soname
from whygpu.tables.cuda_wheels import WHEELS, wheel_of


def test_every_row_has_a_source_and_stands_once() -> None:
    assert all(row.source for row in WHEELS)
    keys = [(row.library, row.cuda) for row in WHEELS]
    assert len(set(keys)) == len(keys)


def test_every_library_of_a_release_with_wheels_has_one() -> None:
    for cuda, release in ((11, "11.8"), (12, "12.5"), (13, "13.0")):
        for library in ("cudart", "cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse"):
            assert soname(library, release) is not None
            assert wheel_of(library, cuda) is not None


@each(
    ("library", "cuda", "wheel"),
    [
        ("cusolver", 12, "nvidia-cusolver-cu12"),
        ("cublasLt", 12, "nvidia-cublas-cu12"),
        ("cudart", 12, "nvidia-cuda-runtime-cu12"),
        ("nvJitLink", 12, "nvidia-nvjitlink-cu12"),
        ("cudnn_ops", 12, "nvidia-cudnn-cu12"),
        ("cublas", 13, "nvidia-cublas"),
        ("cudnn", 13, "nvidia-cudnn-cu13"),
        ("cudart", 10, None),
        ("z", 12, None),
    ],
)
def test_the_wheel_of_a_library(library: str, cuda: int, wheel: str | None) -> None:
    assert wheel_of(library, cuda) == wheel
