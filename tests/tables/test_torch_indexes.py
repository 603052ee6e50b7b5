"""Which CUDA builds of PyTorch exist."""

from __future__ import annotations

import itertools

from tests.cases import each
from whygpu.tables.package_names import NAMES
from whygpu.tables.releases import versions_of
from whygpu.tables.torch_indexes import (
    BUILDS,
    INDEXES,
    index_exists,
    index_has,
    indexes_of,
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
        ("cu130", (2, 14), None),
        ("cu118", (2, 14), False),
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
