"""Which requirements among the packages that matter are not met."""

from __future__ import annotations

import pathlib
import random

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.collectors.sites import install, interpreter
from whygpu.collectors import packages, requirements
from whygpu.collectors.requirements import met_simply
from whygpu.host.local import LocalHost
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.target import RequirementConflict


def conflicts(folder: pathlib.Path) -> tuple[RequirementConflict, ...]:
    return need(requirements.conflicts(packages.collect(LocalHost(), interpreter(folder))))


@pytest.mark.parametrize(
    ("requirement", "installed"),
    [
        ("protobuf<8.0.0,>=6.31.1", "7.36.2"),
        ("protobuf (>=3.6.1)", "3.20.3"),
        ("protobuf", "0.1"),
        ("protobuf>=6.0", "6.31.0rc1"),
        ("protobuf==6.31", "6.31.0+local"),
    ],
)
def test_a_requirement_that_is_met_is_not_mentioned(
    tmp_path: pathlib.Path, requirement: str, installed: str
) -> None:
    install(tmp_path, "tensorflow", "2.21.0", requires=[requirement])
    install(tmp_path, "protobuf", installed)
    assert conflicts(tmp_path) == ()


def test_one_that_is_not_met_names_both_sides(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "2.15.1", requires=["numpy<2.0.0,>=1.23.5"])
    install(tmp_path, "numpy", "2.4.6")
    assert conflicts(tmp_path) == (
        RequirementConflict(
            "tensorflow", "numpy<2.0.0,>=1.23.5", Known("2.4.6", "metadata of numpy")
        ),
    )


def test_a_missing_package_is_a_conflict_of_its_own(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "2.21.0", requires=["keras>=3.12.0"])
    (conflict,) = conflicts(tmp_path)
    assert isinstance(conflict.found, Absent)


def test_spelling_of_names_does_not_matter(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "jax", "0.12.0", requires=["ML.dtypes[extra]>=0.5.0"])
    install(tmp_path, "ml-dtypes", "0.4.0")
    (conflict,) = conflicts(tmp_path)
    assert conflict.requirement == "ML.dtypes[extra]>=0.5.0"


def test_packages_without_a_part_in_gpu_use_are_left_alone(tmp_path: pathlib.Path) -> None:
    install(tmp_path, "tensorflow", "2.21.0", requires=["wrapt>=1.11.0", "tensorboard~=2.20"])
    install(tmp_path, "wrapt", "1.0")
    assert conflicts(tmp_path) == ()


@pytest.mark.parametrize(
    ("requirement", "installed"), [("numpy>=1.16.*", "1.18"), ("numpy>=1.16", "unknown")]
)
def test_what_cannot_be_compared_is_not_taken_for_met(
    tmp_path: pathlib.Path, requirement: str, installed: str
) -> None:
    install(tmp_path, "tensorflow", "2.0.0", requires=[requirement])
    install(tmp_path, "numpy", installed)
    (conflict,) = conflicts(tmp_path)
    assert isinstance(conflict.found, Unknown)


def test_a_copy_that_is_hidden_neither_requires_nor_serves(tmp_path: pathlib.Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    install(first, "tensorflow", "2.21.0", requires=["numpy>=2"])
    install(second, "tensorflow", "2.15.0", requires=["numpy<2"])
    install(first, "numpy", "2.4.6")
    install(second, "numpy", "1.26.4")
    seen = packages.collect(LocalHost(), interpreter(first, second))
    assert need(requirements.conflicts(seen)) == ()


def test_of_two_releases_of_one_package_either_may_meet_a_requirement(
    tmp_path: pathlib.Path,
) -> None:
    """An interrupted upgrade leaves both; which of them the files are is another question."""
    install(tmp_path, "tensorflow", "2.21.0", requires=["keras>=3.12.0", "numpy<2"])
    for release in ("3.15.1", "3.3.3"):
        install(tmp_path, "keras", release)
    for release in ("2.4.6", "2.0.1"):
        install(tmp_path, "numpy", release)
    assert [conflict.requirement for conflict in conflicts(tmp_path)] == ["numpy<2"]


def test_unknown_packages_have_unknown_conflicts() -> None:
    assert requirements.conflicts(Unknown("no packages")) == Unknown("no packages")


def test_simple_comparisons_agree_with_packaging() -> None:
    numbers = random.Random(7)

    def release() -> str:
        return ".".join(str(numbers.randrange(4)) for _ in range(numbers.randrange(1, 4)))

    for _ in range(3000):
        versions = ",".join(
            f"{numbers.choice(('>=', '<=', '==', '!=', '<', '>'))} {release()}"
            for _ in range(numbers.randrange(1, 4))
        )
        installed = release()
        expected = SpecifierSet(versions).contains(Version(installed), prereleases=True)
        assert met_simply(versions, installed) is expected, (versions, installed)


@pytest.mark.parametrize(
    ("versions", "installed"),
    [("~=1.2", "1.2"), (">=1.2", "1.2rc1"), ("==1.*", "1.2"), (">=1.2", "1.2+cu118"), ("", "1")],
)
def test_anything_else_is_left_to_packaging(versions: str, installed: str) -> None:
    assert met_simply(versions, installed) is None
