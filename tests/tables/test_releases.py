"""What is on record about single TensorFlow releases is sound."""

from __future__ import annotations

import itertools

import pytest

from tests.cases import each
from whygpu.tables.cudnn_floors import TENSORFLOW, cudnn_floor
from whygpu.tables.release_defects import search_list_defect
from whygpu.tables.tensorflow_builds import build_of
from whygpu.tables.versions import release_numbers


@pytest.mark.parametrize(("version", "good"), [("2.16.1", "2.16.2"), ("2.21.0", "2.20.0")])
def test_a_defect_names_a_release_without_it(version: str, good: str) -> None:
    row = search_list_defect("tensorflow", version)
    assert row is not None
    assert "cusolver" in row.libraries
    assert row.good_release == good
    assert search_list_defect("tensorflow", good) is None
    theirs, ours = build_of(good), build_of(version)
    assert theirs is not None
    assert theirs is ours, "another CUDA release would need other libraries"


@each("version", ["2.20.0", "2.22.0", "1.0.0", ""])
def test_nothing_is_on_record_against_other_releases(version: str) -> None:
    assert search_list_defect("tensorflow", version) is None


def test_cudnn_floors_are_in_order_and_without_holes() -> None:
    for before, after in itertools.pairwise(TENSORFLOW):
        assert before.first <= before.last < after.first
        assert release_numbers(before.cudnn) < release_numbers(after.cudnn)
    assert all(row.source.startswith("https://") for row in TENSORFLOW)


@each("minor", [*range(22)])
def test_a_cudnn_floor_agrees_with_the_build_on_record(minor: int) -> None:
    floor, build = cudnn_floor(f"2.{minor}.0"), build_of(f"2.{minor}.0")
    assert floor is not None
    assert build is not None
    assert floor.partition(".")[0] == build.cudnn


@each(
    ("version", "floor"),
    [("2.21.0", "9.3"), ("2.14.1", "8.7"), ("1.15.5", "7.4"), ("1.12.0", None), ("2.22.0", None)],
)
def test_the_cudnn_floor_of_a_release(version: str, floor: str | None) -> None:
    assert cudnn_floor(version) == floor
