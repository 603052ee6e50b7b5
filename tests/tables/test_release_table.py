"""The release table is complete, in order, well formed, small, and agrees with the other tables."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.cases import each
from whygpu.model.release import Release
from whygpu.package_index.release_rows import document
from whygpu.tables.cuda_wheels import WHEELS
from whygpu.tables.driver_floors import driver_floors
from whygpu.tables.release_checks import lost, problems
from whygpu.tables.releases import DATA, ReleaseTable, read, shipped, versions_of
from whygpu.tables.tensorflow_builds import build_of, loads_of

LARGEST_FILE_BYTES = 1_500_000

TENSORFLOW = {
    "0.12": "0 1",
    "1.0": "0 1",
    "1.1": "0",
    "1.2": "0 1",
    "1.3": "0",
    "1.4": "0 1",
    "1.5": "0 1",
    "1.6": "0",
    "1.7": "0 1",
    "1.8": "0",
    "1.9": "0",
    "1.10": "0 1",
    "1.11": "0",
    "1.12": "0 2 3",
    "1.13": "1 2",
    "1.14": "0",
    "1.15": "0 2 3 4 5",
    "2.0": "0 1 2 3 4",
    "2.1": "0 1 2 3 4",
    "2.2": "0 1 2 3",
    "2.3": "0 1 2 3 4",
    "2.4": "0 1 2 3 4",
    "2.5": "0 1 2 3",
    "2.6": "0 1 2 3 4 5",
    "2.7": "0 1 2 3 4",
    "2.8": "0 1 2 3 4",
    "2.9": "0 1 2 3",
    "2.10": "0 1",
    "2.11": "0 1",
    "2.12": "0 1",
    "2.13": "0 1",
    "2.14": "0 1",
    "2.15": "0 0.post1 1",
    "2.16": "1 2",
    "2.17": "0 1",
    "2.18": "0 1",
    "2.19": "0 1",
    "2.20": "0",
    "2.21": "0",
}
"""Every final release of TensorFlow with a wheel on PyPI up to 2.21, read from its page apart."""

PACKAGES = (
    "tensorflow",
    "tensorflow-gpu",
    "tensorflow-cpu",
    "tf-keras",
    "keras",
    "jax",
    "jaxlib",
    "jax-cuda11-plugin",
    "jax-cuda12-plugin",
    "jax-cuda12-pjrt",
    "jax-cuda13-plugin",
    "jax-cuda13-pjrt",
    "torch",
    "onnxruntime-gpu",
    "cupy-cuda102",
    "cupy-cuda11x",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "cuda-toolkit",
    "numpy",
    "protobuf",
    "ml-dtypes",
    "h5py",
)


NEVER_PUBLISHED = {
    "nvidia-cuda-nvrtc-cu13",
    "nvidia-cuda-runtime-cu13",
    "nvidia-cufft-cu13",
    "nvidia-curand-cu13",
    "tensorrt-libs",
}
"""What onnxruntime-gpu 1.27.0 and tensorflow 2.15.0 ask for in their extras: names that are taken
on PyPI, with nothing behind them."""


def of(package: str, version: str) -> Release:
    (row,) = (row for row in versions_of(package) if row.version == version)
    return row


@each("minor", TENSORFLOW)
def test_every_release_of_tensorflow_has_a_row(minor: str) -> None:
    expected = [f"{minor}.{patch}" for patch in TENSORFLOW[minor].split()]
    rows = [row.version for row in versions_of("tensorflow") if row.version.startswith(f"{minor}.")]
    assert rows == expected


@each("package", PACKAGES)
def test_a_package_has_rows(package: str) -> None:
    assert versions_of(package)


@pytest.mark.slow
def test_what_rows_require_of_nvidia_has_rows_too() -> None:
    names = {Requirement(line).name for row in shipped().rows() for line in row.requires}
    wanted = {name for name in names if name.startswith(("nvidia-", "cuda-", "tensorrt"))}
    assert wanted - {row.package for row in shipped().rows()} == NEVER_PUBLISHED


def test_extras_that_cannot_be_installed_can_be_told_from_the_table() -> None:
    """TensorRT has no wheel for Python 3.11 that 2.14 could use, and none at all for 2.15.0."""
    assert 'tensorrt==8.5.3.1; extra == "and-cuda"' in of("tensorflow", "2.14.1").requires
    assert of("tensorrt", "8.5.3.1").pythons[-1] == "3.10"
    assert 'tensorrt-libs==8.6.1; extra == "and-cuda"' in of("tensorflow", "2.15.0").requires
    assert versions_of("tensorrt-libs") == ()
    for version in ("2.15.0.post1", "2.15.1", "2.21.0"):
        assert "tensorrt" not in " ".join(of("tensorflow", version).requires)


@pytest.mark.slow
def test_the_shipped_table_is_sound() -> None:
    assert list(problems(shipped().rows())) == []


_ROW = Release(
    package="demo",
    version="1.9",
    file="demo-1.9-py3-none-any.whl",
    pythons=("3.9", "3.10"),
    requires_python=">=3.9",
    platforms=("any",),
    glibc="2.17",
    cuda="12.1",
    cudnn="8",
    architectures=("sm_80",),
    requires=("numpy>=1.2",),
    unsearched=(),
)


@each(
    ("change", "wrong"),
    [
        ({}, None),
        ({"version": "1.9rc1", "file": "demo-1.9rc1-py3-none-any.whl"}, "not a final release"),
        ({"package": "De_mo"}, "not normalised"),
        ({"file": "demo-1.8-py3-none-any.whl"}, "of another release"),
        ({"file": "demo.zip"}, "Invalid wheel filename"),
        ({"file": "demo-1.9-py3-none-win32.whl"}, "for a platform"),
        ({"file": "demo-1.9-py3-none-any.whl; architectures from here"}, "not a web page"),
        ({"platforms": ("any", "an y")}, "platform tag"),
        ({"pythons": ("3.10", "3.9")}, "in order"),
        ({"pythons": ("three",)}, "Python version"),
        ({"requires_python": "three"}, "Invalid specifier"),
        ({"glibc": "1.2"}, "glibc"),
        ({"cuda": "twelve"}, "CUDA"),
        ({"architectures": ("sm",)}, "architecture"),
        ({"cuda": ""}, "do not agree"),
        ({"unread": "not read"}, "do not agree"),
        ({"requires": ("numpy >= 1.2",)}, "not normalised"),
        ({"requires": ("numpy $(x)",)}, "cannot be parsed"),
    ],
)
def test_a_row_that_is_not_sound_is_named(change: dict[str, Any], wrong: str | None) -> None:
    found = list(problems([_ROW._replace(**change)]))
    if wrong is None:
        assert found == []
    else:
        assert wrong in found[0]


def test_rows_must_be_in_order_and_there_once() -> None:
    newer = _ROW._replace(version="1.10", file="demo-1.10-py3-none-any.whl")
    assert not list(problems([_ROW, newer]))
    assert list(problems([newer, _ROW]))
    assert list(problems([_ROW, _ROW]))


@each(("left", "expected"), [(10, 0), (8, 0), (7, 1), (0, 1)])
def test_an_index_that_has_lost_many_releases_is_not_believed(left: int, expected: int) -> None:
    before = [_ROW._replace(version=f"1.{minor}") for minor in range(10)]
    assert len(list(lost(before, before[:left]))) == expected


@each(
    ("text", "wrong"),
    [
        ("", "incomplete"),
        ('{"schema": 1, "harvested": "2026-01-02", "releases": [\n["demo"', "incomplete"),
        ('{"schema": 2, "harvested": "2026-01-02", "releases": [\n\n]}\n', "incomplete"),
        (document([_ROW], "2026-01-02").replace('"1.9"', '"../x"'), "version"),
        (document([_ROW], "2026-01-02").replace('["any"]', '"any"'), "platforms"),
        (document([_ROW], "2026-01-02").replace('"12.1",', ""), "too few"),
    ],
)
def test_a_damaged_table_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        ReleaseTable(text).rows()


def test_architectures_come_with_a_cuda_release_whose_driver_is_known() -> None:
    for row in shipped().rows():
        assert row.cuda or not row.architectures, row
        if row.cuda:
            assert driver_floors(row.cuda), row


@each(
    ("package", "first"),
    [
        ("tensorflow", "2.1"),
        ("tensorflow-gpu", "0.12"),
        ("torch", "1.0"),
        ("jax-cuda11-plugin", "0"),
        ("jax-cuda12-plugin", "0"),
        ("jax-cuda13-plugin", "0"),
    ],
)
def test_cuda_builds_know_their_architectures(package: str, first: str) -> None:
    for row in versions_of(package):
        if Version(row.version) >= Version(first):
            assert row.cuda, row
            assert row.architectures, row


def test_builds_agree_with_the_table_that_check_uses() -> None:
    for row in (*versions_of("tensorflow"), *versions_of("tensorflow-gpu")):
        build = build_of(row.version)
        assert build is not None, row
        if row.cuda:
            assert row.cuda == build.cuda, row
            assert row.cudnn in ("", build.cudnn), row


def test_the_releases_with_a_defect_are_the_known_ones() -> None:
    found = [(row.package, row.version) for row in shipped().rows() if row.unsearched]
    assert found == [("tensorflow", "2.16.1"), ("tensorflow", "2.21.0")]


def test_what_is_unsearched_is_installed_by_the_extra_and_opened() -> None:
    for row in shipped().rows():
        extra = {Requirement(line).name for line in row.requires if "and-cuda" in line}
        brought = {wheel.library for wheel in WHEELS if wheel.distribution in extra}
        opened = {load.library for load in loads_of(row.version) if load.required}
        assert set(row.unsearched) <= brought & opened, row


@each(
    ("package", "version", "expected"),
    [
        # Each read by hand from the wheel.
        ("tensorflow", "2.16.1", ("12.3", "8", "2.17")),
        ("tensorflow", "1.15.0", ("10.0", "7", "2.12")),
        ("tensorflow", "1.15.2", ("", "", "2.12")),
        ("tensorflow-gpu", "1.4.0", ("8.0", "6", "2.5")),
        ("torch", "2.15.0", ("13.2", "9.26.0.51", "2.28")),
        ("jax-cuda12-plugin", "0.12.0.1", ("12.9", "9.10.2", "2.27")),
    ],
)
def test_rows_read_by_hand(package: str, version: str, expected: tuple[str, ...]) -> None:
    row = of(package, version)
    assert (row.cuda, row.cudnn, row.glibc) == expected


def test_torch_has_its_own_architectures_and_not_those_of_magma() -> None:
    assert of("torch", "2.0.1").architectures == tuple(
        f"sm_{number}" for number in (37, 50, 60, 70, 75, 80, 86)
    )


def test_the_file_is_small() -> None:
    assert os.path.getsize(DATA) < LARGEST_FILE_BYTES


def test_rows_read_one_package_at_a_time_are_the_rows_of_the_file() -> None:
    assert shipped().rows() == read(DATA).rows()
    assert versions_of("no-such-package") == ()


def test_the_table_has_a_date() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", shipped().date)
