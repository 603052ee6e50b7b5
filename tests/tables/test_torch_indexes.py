"""Which CUDA builds of PyTorch exist."""

from __future__ import annotations

import itertools

from tests.cases import each
from whygpu.tables.architectures import parse_code
from whygpu.tables.package_names import NAMES
from whygpu.tables.releases import versions_of
from whygpu.tables.torch_indexes import (
    BUILDS,
    CODES,
    INDEXES,
    build_code,
    cuda_of,
    index_exists,
    index_has,
    indexes_for,
    indexes_of,
    releases_on,
    tag_of,
    torch_release,
)
from whygpu.tables.versions import release_numbers


def test_rows_are_in_order_and_without_holes() -> None:
    for before, after in itertools.pairwise(BUILDS):
        first_major = after.release == (2, 0) and before.release == (1, 13)
        assert first_major or after.release == (before.release[0], before.release[1] + 1)
    for row in BUILDS:
        assert list(row.cuda) == sorted(row.cuda, key=INDEXES.index)
        assert row.source.startswith("https://")


def test_the_build_on_pypi_is_one_of_them() -> None:
    for row in versions_of("torch"):
        indexes = indexes_of(release_numbers(row.version)[:2])  # type: ignore[arg-type]
        cuda = "cu{}{}".format(*release_numbers(row.cuda)[:2])
        assert not indexes or cuda in indexes, row.version


def test_the_code_of_every_build_for_linux_is_on_record() -> None:
    for row in BUILDS:
        for tag in indexes_for("linux_x86_64", row.release):
            assert build_code("linux_x86_64", row.release, tag) is not None, (row.release, tag)


def test_code_is_on_record_only_for_builds_that_exist() -> None:
    for row in CODES:
        assert row.source.startswith("https://")
        assert all(parse_code(name) for name in row.architectures)
        for tag in row.indexes:
            released = [item for item in releases_on(tag) if row.first <= item <= row.last]
            assert released, (row, tag)


def test_the_code_of_the_build_on_pypi_is_that_of_its_index() -> None:
    for row in versions_of("torch"):
        release = release_numbers(row.version)[:2]
        code = build_code("linux_x86_64", release, tag_of(row.cuda))  # type: ignore[arg-type]
        if release >= (1, 11) and code is not None:
            assert set(row.architectures) == set(code.architectures), row.version


@each(
    ("platform", "release", "tags"),
    [
        ("win_amd64", (2, 14), ("cu126", "cu130", "cu132")),
        ("win_amd64", (1, 12), ("cu113", "cu116")),
        ("linux_x86_64", (1, 12), ("cu102", "cu113", "cu116")),
        ("linux_x86_64", (1, 10), ()),
        ("linux_aarch64", (2, 5), ()),
        ("linux_aarch64", (2, 9), ("cu126", "cu128", "cu130")),
        ("macosx_arm64", (2, 9), ()),
    ],
)
def test_the_indexes_for_a_platform(
    platform: str, release: tuple[int, int], tags: tuple[str, ...]
) -> None:
    assert indexes_for(platform, release) == tags


@each(("tag", "cuda"), [("cu126", "12.6"), ("cu92", "9.2"), ("cu102", "10.2"), ("cu130", "13.0")])
def test_the_cuda_of_an_index(tag: str, cuda: str) -> None:
    assert cuda_of(tag) == cuda
    assert tag_of(f"{cuda}.1") == tag


@each(
    ("tag", "expected"),
    [("cu125", False), ("cu112", False), ("cu121", True), ("cu80", True), ("cu199", None)],
)
def test_an_index_exists(tag: str, expected: bool | None) -> None:
    assert index_exists(tag) is expected


@each(
    ("tag", "release", "expected"),
    [
        ("cu117", (2, 0), True),
        ("cu117", (2, 3), False),
        ("cu121", (2, 0), False),
        ("cu125", (2, 4), False),
        # PyTorch's page lists 2.8 and 2.11 for CUDA 12.9, and nothing excludes those between.
        ("cu129", (2, 9), None),
        ("cu128", (2, 12), False),
        # Releases after the last row are not on record.
        ("cu130", (2, 16), None),
        ("cu118", (2, 16), False),
        ("cu126", (2, 15), False),
    ],
)
def test_an_index_has_a_release(tag: str, release: tuple[int, int], expected: bool | None) -> None:
    assert index_has(tag, release) is expected


@each(
    ("package", "version", "expected"),
    [
        ("torch", "2.3.1", (2, 3)),
        ("torchvision", "0.18.1", (2, 3)),
        ("torchvision", "0.14.1", (1, 13)),
        ("torchvision", "0.2.2", None),
        ("torchaudio", "2.0.2", (2, 0)),
        ("torchaudio", "0.13.1", (1, 13)),
        ("numpy", "1.26", None),
    ],
)
def test_the_release_of_torch_that_a_package_belongs_to(
    package: str, version: str, expected: tuple[int, int] | None
) -> None:
    assert torch_release(package, version) == expected


def test_wrong_names_are_not_names_on_record() -> None:
    for row in NAMES:
        assert not versions_of(row.wrong)
        assert row.source.startswith("https://")
