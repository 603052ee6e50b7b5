"""The release table is complete, in order, well formed, small, and agrees with the other tables."""

from __future__ import annotations

import itertools
import os
import re

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from tests.cases import each
from whygpu.model.release import Release
from whygpu.tables.architectures import parse_code
from whygpu.tables.cuda_wheels import WHEELS
from whygpu.tables.driver_floors import driver_floors
from whygpu.tables.releases import DATA, read, releases, versions_of
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


def test_what_rows_require_of_nvidia_has_rows_too() -> None:
    names = {Requirement(line).name for row in releases() for line in row.requires}
    wanted = {name for name in names if name.startswith(("nvidia-", "cuda-", "tensorrt"))}
    assert wanted - {row.package for row in releases()} == NEVER_PUBLISHED


def test_extras_that_cannot_be_installed_can_be_told_from_the_table() -> None:
    """TensorRT has no wheel for Python 3.11 that 2.14 could use, and none at all for 2.15.0."""
    assert 'tensorrt==8.5.3.1; extra == "and-cuda"' in of("tensorflow", "2.14.1").requires
    assert of("tensorrt", "8.5.3.1").pythons[-1] == "3.10"
    assert 'tensorrt-libs==8.6.1; extra == "and-cuda"' in of("tensorflow", "2.15.0").requires
    assert versions_of("tensorrt-libs") == ()
    for version in ("2.15.0.post1", "2.15.1", "2.21.0"):
        assert "tensorrt" not in " ".join(of("tensorflow", version).requires)


def test_rows_are_in_order_and_without_duplicates() -> None:
    keys = [(row.package, Version(row.version)) for row in releases()]
    assert all(before < after for before, after in itertools.pairwise(keys))


def test_only_final_releases() -> None:
    for row in releases():
        version = Version(row.version)
        assert not version.is_prerelease, row
        assert version.local is None, row
        assert row.package == canonicalize_name(row.package)


def test_a_file_belongs_to_its_row() -> None:
    for row in releases():
        filename, *source = row.file.split("; architectures from ")
        name, version, _, tags = parse_wheel_filename(filename)
        assert (name, version) == (row.package, Version(row.version)), row
        assert {tag.platform for tag in tags} <= set(row.platforms), row
        assert all(url.startswith("https://") for url in source), row


def test_fields_are_well_formed() -> None:
    for row in releases():
        assert row.platforms, row
        assert list(row.pythons) == sorted(row.pythons, key=Version), row
        assert all(re.fullmatch(r"[23]\.\d+", python) for python in row.pythons), row
        SpecifierSet(row.requires_python)
        assert all(parse_code(code) for code in row.architectures), row
        assert re.fullmatch(r"(2\.\d+)?", row.glibc), row
        assert re.fullmatch(r"(\d+(\.\d+)*)?", row.cuda), row
        assert re.fullmatch(r"(\d+(\.\d+)*)?", row.cudnn), row
        for line in row.requires:
            assert str(Requirement(line)) == line, row


def test_architectures_come_with_a_cuda_release_whose_driver_is_known() -> None:
    for row in releases():
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
    found = [(row.package, row.version) for row in releases() if row.unsearched]
    assert found == [("tensorflow", "2.16.1"), ("tensorflow", "2.21.0")]


def test_what_is_unsearched_is_installed_by_the_extra_and_opened() -> None:
    for row in releases():
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
    assert releases() == read(DATA)
    assert versions_of("no-such-package") == ()
