"""The table of sonames is sound, and gives the names that real programs ask for."""

from __future__ import annotations

import itertools

from tests.cases import each
from whygpu.tables.cuda_libraries import RELEASES, cudnn_soname, is_cuda_library, soname


def test_every_row_has_a_source_and_a_range() -> None:
    for row in RELEASES:
        assert row.source
        assert row.first <= row.last
        assert row.first[0] == row.last[0]
        assert {"cudart", "cublas", "cufft", "cusolver", "cusparse"} <= row.suffixes.keys()


def test_ranges_are_in_order_and_do_not_overlap() -> None:
    for before, after in itertools.pairwise(RELEASES):
        assert before.last < after.first


@each(
    ("library", "cuda", "name"),
    [
        ("cublas", "9.0", "libcublas.so.9.0"),
        ("cusolver", "11.0", "libcusolver.so.10"),
        ("cusolver", "11.1", "libcusolver.so.11"),
        ("cudart", "11.8", "libcudart.so.11.0"),
        ("cufft", "12.5.1", "libcufft.so.11"),
        ("cusparse", "13", "libcusparse.so.12"),
        ("cudart", "11", "libcudart.so.11.0"),
    ],
)
def test_names_by_release(library: str, cuda: str, name: str) -> None:
    assert soname(library, cuda) == name


@each(
    ("library", "cuda"),
    [
        ("cublas", "10"),  # 10.0 and 10.1 differ
        ("cublas", "99.0"),
        ("cublasLt", "9.0"),
        ("cublas", "unknown"),
    ],
)
def test_what_is_not_on_record_is_not_guessed(library: str, cuda: str) -> None:
    assert soname(library, cuda) is None


def test_cudnn_carries_its_major_version() -> None:
    assert cudnn_soname("9.10.2.21") == "libcudnn.so.9"


@each(
    "name",
    [
        "libcudart.so.12",
        "libcuda.so.1",
        "libnccl.so.2",
        "libnvrtc-builtins.so.12.9",
        "libcublasLt.so.12",
        "libcudnn_graph.so.9",
        "libcudart-80664282.so.10.2",
        "libnvidia-ml.so.1",
    ],
)
def test_nvidia_libraries_are_recognised(name: str) -> None:
    assert is_cuda_library(name)


@each("name", ["libc.so.6", "libcurl.so.4", "libtorch.so", "libcups.so.2"])
def test_others_are_not(name: str) -> None:
    assert not is_cuda_library(name)
