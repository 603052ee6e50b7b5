"""The tables of TensorFlow releases are sound."""

from __future__ import annotations

import itertools

import pytest

from tests.cases import each
from whygpu.tables.cuda_libraries import soname
from whygpu.tables.tensorflow_builds import BUILDS, LOADS, build_of, loads_of
from whygpu.tables.versions import release_numbers

DRIVER = {"cuda", "nvidia-ml", "cudnn"}


def test_ranges_are_in_order_and_without_overlap() -> None:
    for before, after in itertools.pairwise(BUILDS):
        assert before.first <= before.last < after.first
    assert all(row.source for row in BUILDS)
    assert all(row.source and row.first <= row.last for row in LOADS)


@each(
    ("version", "cuda", "cudnn"),
    [
        ("1.4.1", "8.0", "6"),
        ("1.12.0", "9.0", "7"),
        ("1.15.5", "10.0", "7"),
        ("2.2.3", "10.1", "7"),
        ("2.15.0.post1", "12.2", "8"),
        ("2.21.0", "12.5.1", "9"),
    ],
)
def test_known_releases(version: str, cuda: str, cudnn: str) -> None:
    row = build_of(version)
    assert row is not None
    assert (row.cuda, row.cudnn) == (cuda, cudnn)


@each("version", ["0.11.0", "2.99.0", "", "nightly"])
def test_releases_that_are_not_on_record(version: str) -> None:
    assert build_of(version) is None


def test_a_release_opens_each_library_once() -> None:
    for row in BUILDS:
        names = [load.library for load in loads_of(f"{row.last[0]}.{row.last[1]}.0")]
        assert len(set(names)) == len(names)


def test_every_library_has_a_name_in_the_cuda_release_it_is_opened_from() -> None:
    for row in BUILDS:
        for load in loads_of(f"{row.last[0]}.{row.last[1]}.0"):
            assert load.library in DRIVER or soname(load.library, row.cuda)


def test_releases_up_to_1_13_open_nothing_by_name() -> None:
    assert loads_of("1.13.2") == ()
    assert loads_of("1.14.0")


@pytest.mark.parametrize(
    ("version", "numbers"), [("2.21.0rc1+cpu", (2, 21, 0)), ("0.4", (0, 4)), ("dev", ())]
)
def test_release_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert release_numbers(version) == numbers
