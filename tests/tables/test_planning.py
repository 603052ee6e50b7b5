"""The tables that plans are made from are sound, and agree with each other."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from tests.cases import each
from whygpu.tables import (
    conda_toolkits,
    cuda_architectures,
    cudnn_support,
    driver_branches,
    keras_backends,
    metal_builds,
    platform_builds,
    python_releases,
    reported_failures,
    undeclared_limits,
    windows_driver_floors,
)
from whygpu.tables.driver_floors import FLOORS, driver_floors
from whygpu.tables.versions import release_numbers


def test_sources_are_addresses() -> None:
    rows: tuple[Any, ...] = (
        *conda_toolkits.ROWS,
        *cuda_architectures.ROWS,
        *cudnn_support.ROWS,
        *driver_branches.BRANCHES,
        *driver_branches.LAST_BRANCHES,
        *keras_backends.ROWS,
        *metal_builds.ROWS,
        *platform_builds.ROWS,
        *python_releases.RELEASES,
        *undeclared_limits.LIMITS,
        *windows_driver_floors.WINDOWS_FLOORS,
    )
    assert all(row.source.startswith("https://") for row in rows)


def test_reported_failures_have_reports_and_ranges() -> None:
    for row in reported_failures.ROWS:
        assert row.sources
        assert all(source.startswith("https://") for source in row.sources)
        assert row.first <= row.last
        assert row.oldest <= row.newest


@each(
    ("framework", "version", "gpu", "kind", "certain"),
    [
        ("tensorflow", "2.20.0", (12, 0), "geforce", True),
        ("tensorflow", "2.21.0", (12, 0), "geforce", False),
        ("tensorflow", "2.20.0", (9, 0), "data-center", None),
        ("tensorflow", "1.15.5", (8, 6), "geforce", True),
        ("tensorflow", "1.15.5", (7, 5), "geforce", None),
        ("tensorflow", "1.12.3", (7, 5), "geforce", False),
        ("tensorflow", "2.4.0", (8, 6), "geforce", None),
        ("torch", "1.5.1", (9, 0), "data-center", True),
        ("torch", "1.6.0", (9, 0), "data-center", None),
        ("torch", "2.4.0", (3, 7), "data-center", True),
        ("torch", "2.3.1", (3, 7), "data-center", False),
        ("torch", "1.12.1", (3, 7), "data-center", None),
        ("torch", "2.10.0", (8, 7), "jetson", True),
        ("torch", "2.10.0", (11, 0), "jetson", None),
        ("torch", "2.10.0", (8, 7), None, None),
    ],
)
def test_a_reported_failure(
    framework: str, version: str, gpu: tuple[int, int], kind: Any, certain: bool | None
) -> None:
    row = reported_failures.reported_failure(framework, version, gpu, kind)
    assert (row.is_certain if row else None) is certain


@each(
    ("cudnn", "newest"),
    [
        ("7", (7, 5)),
        ("8", (9, 0)),
        ("8.1.0", (8, 6)),
        ("8.9.2.26", (9, 0)),
        ("9.5.1.17", (9, 0)),
        ("9.10.2.21", (12, 0)),
        ("9", (12, 1)),
        ("5", None),
        ("", None),
    ],
)
def test_the_newest_gpu_of_a_cudnn(cudnn: str, newest: tuple[int, int] | None) -> None:
    assert cudnn_support.newest_gpu(cudnn) == newest


def test_newer_branches_bring_newer_cuda() -> None:
    for before, after in itertools.pairwise(driver_branches.BRANCHES):
        assert before.branch < after.branch
        assert before.cuda <= after.cuda


def test_months_are_months() -> None:
    months = [row.end_of_life for row in driver_branches.BRANCHES if row.end_of_life]
    months += [row.end_of_life for row in python_releases.RELEASES]
    assert all(re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", month) for month in months)


def test_a_floor_lies_in_a_branch_that_knows_its_cuda() -> None:
    for floor in FLOORS:
        branch = driver_branches.branch_of(floor.driver)
        assert branch is not None, floor
        # From 11.1 on, one floor serves every minor release.
        assert branch.cuda >= floor.first or floor.first == (11, 1)


def test_windows_has_a_floor_for_every_linux_one() -> None:
    windows = [(row.first, row.last) for row in windows_driver_floors.WINDOWS_FLOORS]
    assert windows == [(row.first, row.last) for row in FLOORS]


@each(
    ("cuda", "drivers"), [("11.8", ["452.39"]), ("12.5.1", ["527.41"]), ("13.0", ["580"]), ("", [])]
)
def test_a_windows_floor(cuda: str, drivers: list[str]) -> None:
    found = windows_driver_floors.windows_driver_floors(cuda)
    assert [row.driver for row in found] == drivers


@each(
    ("driver", "cuda"),
    [("470.82", (11, 4)), ("580.159.04", (13, 0)), ("535.54.03", (12, 2)), ("1.0", None)],
)
def test_the_branch_of_a_driver(driver: str, cuda: tuple[int, int] | None) -> None:
    branch = driver_branches.branch_of(driver)
    assert (branch.cuda if branch else None) == cuda


@each(("gpu", "last"), [((2, 1), 390), ((3, 7), 470), ((6, 1), 580), ((7, 0), 580), ((7, 5), None)])
def test_the_last_branch_for_a_gpu(gpu: tuple[int, int], last: int | None) -> None:
    row = driver_branches.last_branch_for(gpu)
    assert (row.branch if row else None) == last


def test_cuda_releases_are_without_holes_and_drop_gpus_in_order() -> None:
    rows = cuda_architectures.ROWS
    for before, after in itertools.pairwise(rows):
        assert before.first <= before.last < after.first
        assert before.oldest <= after.oldest
        assert before.newest <= after.newest
    for floor in FLOORS:
        assert cuda_architectures.built_for(f"{floor.first[0]}.{floor.first[1]}") is not None


@each(
    ("cuda", "limits"),
    [
        ("11.8", ((3, 5), (9, 0))),
        ("12.5.1", ((5, 0), (9, 0))),
        ("12", ((5, 0), (12, 1))),
        ("13.0", ((7, 5), (12, 1))),
        ("7.5", None),
    ],
)
def test_what_a_cuda_release_builds_for(
    cuda: str, limits: tuple[tuple[int, int], tuple[int, int]] | None
) -> None:
    row = cuda_architectures.built_for(cuda)
    assert ((row.oldest, row.newest) if row else None) == limits


@each(
    ("cudnn", "oldest"),
    [
        ("9.10.2.21", (5, 0)),
        ("9.11.0.98", (7, 5)),
        ("9", (5, 0)),
        ("8.9.7", (5, 0)),
        ("8.6.0", None),
        ("7.6.5", (3, 0)),
    ],
)
def test_the_oldest_gpu_of_a_cudnn_release(cudnn: str, oldest: tuple[int, int] | None) -> None:
    row = cudnn_support.cudnn_support(cudnn)
    assert (row.oldest if row else None) == oldest


def test_cudnn_13_needs_what_cuda_13_needs() -> None:
    served = cudnn_support.cudnn_support("9.19.0.56")
    cuda = cuda_architectures.built_for("13.0")
    assert served is not None
    assert cuda is not None
    assert served.oldest == cuda.oldest


@each(
    ("package", "version", "platform", "without"),
    [
        ("tensorflow", "2.10.1", "win_amd64", False),
        ("tensorflow", "2.11.0", "win_amd64", True),
        ("tensorflow", "2.20.0", "linux_x86_64", False),
        ("tensorflow", "2.20.0", "linux_aarch64", True),
        ("torch", "2.10.0", "linux_aarch64", True),
        ("torch", "2.11.0", "linux_aarch64", False),
        ("torch", "2.11.0", "win_amd64", True),
        ("torch", "2.10.0", "linux_x86_64", False),
    ],
)
def test_builds_without_cuda(package: str, version: str, platform: str, without: bool) -> None:
    row = platform_builds.build_without_cuda(package, version, platform)
    assert (row is not None) == without


@pytest.mark.parametrize(
    ("version", "requirements"),
    [
        ("1.15.5", {"protobuf<3.21", "numpy<1.24"}),
        ("2.10.1", {"numpy<2"}),
        ("2.18.0", set()),
    ],
)
def test_undeclared_limits(version: str, requirements: set[str]) -> None:
    found = undeclared_limits.undeclared_limits("tensorflow", version)
    assert {row.requirement for row in found} == requirements


def test_python_releases_are_in_order() -> None:
    versions = [release_numbers(row.version) for row in python_releases.RELEASES]
    assert versions == sorted(versions)
    assert python_releases.python_release("3.11.9") == python_releases.python_release("3.11")


def test_every_branch_can_run_some_cuda() -> None:
    for branch in driver_branches.BRANCHES:
        assert driver_floors(f"{branch.cuda[0]}.{branch.cuda[1]}")


@each(
    ("keras", "backend", "requirement"),
    [
        ("3.1.1", "torch", None),
        ("3.2.0", "torch", "torch>=2.1"),
        ("3.15.1", "torch", "torch>=2.1"),
        # Pairs that were run: 3.8.0 fails with JAX 0.6.1, and 3.12.0 with 0.4.29.
        ("3.8.0", "jax", "jax<0.6.1"),
        ("3.9.0", "jax", "jax<0.6.1"),
        ("3.9.2", "jax", "jax<0.6.1,>=0.4.24"),
        ("3.11.3", "jax", "jax>=0.4.24"),
        ("3.12.0", "jax", "jax>=0.4.30"),
        ("3.15.1", "tensorflow", None),
    ],
)
def test_the_backends_that_a_keras_works_on(
    keras: str, backend: str, requirement: str | None
) -> None:
    limit = keras_backends.backend_limit(keras, backend)
    assert (limit.requirement if limit else None) == requirement
