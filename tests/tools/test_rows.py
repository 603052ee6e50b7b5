"""From tags and requirements to the fields of a row, and the whole way for a small index."""

from __future__ import annotations

import json
import pathlib

import pytest
from packaging.requirements import Requirement
from packaging.tags import Tag

from tests.cases import each
from tests.package_index.local_index import LocalIndex
from tools.harvest.__main__ import main
from whygpu.model.release import Release
from whygpu.package_index.release_rows import (
    document,
    glibc_floor,
    nvidia_packages,
    python_versions,
    requirements_that_matter,
    toolkit_parts,
)
from whygpu.tables.releases import read

LINUX = "manylinux2014_x86_64"
ROW = Release("demo", "1.9", "demo-1.9-py3-none-any.whl", (), "", ("any",), "", "", "", (), (), ())


@each(
    ("tags", "versions"),
    [
        ([Tag("cp310", "cp310", LINUX), Tag("cp39", "cp39", LINUX)], ("3.9", "3.10")),
        ([Tag("cp27", "cp27mu", LINUX), Tag("cp36", "cp36m", LINUX)], ("2.7", "3.6")),
        ([Tag("cp313", "cp313", LINUX), Tag("cp314", "cp314t", LINUX)], ("3.13",)),
        ([Tag("cp310", "abi3", LINUX)], ()),
        ([Tag("cp310", "none", LINUX)], ("3.10",)),
        ([Tag("cp310", "cp310", LINUX), Tag("cp311", "cp311", "musllinux_1_2_x86_64")], ("3.10",)),
        ([Tag("py2", "none", "any"), Tag("py3", "none", "any")], ()),
    ],
)
def test_pythons(tags: list[Tag], versions: tuple[str, ...]) -> None:
    assert python_versions(tags) == versions


def test_pythons_with_a_wheel_for_their_free_threaded_build() -> None:
    tags = [Tag("cp313", "cp313", LINUX), Tag("cp314", "cp314t", LINUX), Tag("py3", "none", "any")]
    assert python_versions(tags, "t") == ("3.14",)
    assert python_versions(tags[:1], "t") == ()


def test_fields_that_say_nothing_are_left_out_at_the_end_of_a_row(tmp_path: pathlib.Path) -> None:
    rows = (ROW, ROW._replace(version="2.0", free_threaded=("3.14",)))
    table = tmp_path / "releases.json"
    table.write_text(document(rows, "2026-11-15"))
    assert read(str(table)).rows() == rows
    short, full = table.read_text().splitlines()[1:3]
    assert short.endswith(",[],[],[]],")
    assert full.endswith(',[],"",["3.14"]]')


@each(
    ("platforms", "floor"),
    [
        (["manylinux_2_28_x86_64", "manylinux_2_9_x86_64"], "2.9"),
        (["manylinux1_x86_64"], "2.5"),
        (["manylinux_2_17_x86_64", "manylinux2014_x86_64"], "2.17"),
        (["manylinux_2_17_aarch64", "macosx_11_0_arm64", "win_amd64", "any"], ""),
    ],
)
def test_glibc(platforms: list[str], floor: str) -> None:
    assert glibc_floor(platforms) == floor


def test_requirements_on_packages_of_the_table() -> None:
    lines = (
        "numpy (>=1.11.0)",
        "absl-py",
        "ml_dtypes>=0.5",
        "jaxlib==0.4; extra == 'tpu'",
        "nvidia-cublas-cu12==12.1; extra == 'and-cuda'",
        "not a requirement!",
    )
    assert [str(one) for one in requirements_that_matter(lines)] == [
        "numpy>=1.11.0",
        "ml-dtypes>=0.5",
        'nvidia-cublas-cu12==12.1; extra == "and-cuda"',
    ]


def test_parts_of_the_toolkit_are_those_of_linux() -> None:
    requirements = [
        Requirement(line)
        for line in (
            'nvidia-cublas==13.1; (sys_platform == "win32" or sys_platform == "linux") and '
            'extra == "cublas"',
            'nvidia-cudla==13.1; platform_machine == "aarch64" and extra == "cublas"',
            'nvidia-npp==13.1; extra == "npp"',
        )
    ]
    assert [str(part) for part in toolkit_parts(requirements)] == [
        'nvidia-cublas==13.1; extra == "cublas"'
    ]


def test_nvidias_packages_follow_from_requirements() -> None:
    row = ROW._replace(requires=("nvidia-nccl-cu12>=2", "cuda-toolkit==13", "numpy", "tensorrt"))
    assert nvidia_packages([row]) == ("nvidia-nccl-cu12", "tensorrt")


def test_the_document_is_in_order_and_reads_back(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "releases.json"
    newer = ROW._replace(version="1.10", requires=("numpy",))
    path.write_text(document([newer, ROW], "2026-01-02"), encoding="utf-8")
    assert read(str(path)).rows() == (ROW, newer)
    assert json.loads(path.read_text())["harvested"] == "2026-01-02"


@pytest.fixture
def small_index(index: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    """keras, which requires a package of NVIDIA's."""
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
    metadata = b"Requires-Python: >=3.9\nRequires-Dist: nvidia-nccl-cu12>=2\n"
    link = index.add_wheel("keras-3.0-py3-none-any.whl", {"keras-3.0.dist-info/METADATA": metadata})
    index.add_page("keras", link)
    index.add_page("nvidia-nccl-cu12", '<a href="nvidia_nccl_cu12-2.1-py3-none-any.whl">x</a>')
    return index


@pytest.mark.slow
def test_the_whole_way(
    small_index: LocalIndex, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "releases.json"
    output.write_text(document([ROW], "2026-01-01"), encoding="utf-8")
    words = ["--packages", "keras", "--cache", str(tmp_path / "cache"), "--output", str(output)]
    assert main(words) == 0
    assert [
        (row.package, row.version, row.requires_python) for row in read(str(output)).rows()
    ] == [
        ("demo", "1.9", ""),
        ("keras", "3.0", ">=3.9"),
        ("nvidia-nccl-cu12", "2.1", ""),
    ]
    assert "2 releases read, 1 kept as they were" in capfd.readouterr().err


@pytest.mark.slow
def test_a_release_that_cannot_be_read_is_named_and_keeps_its_row(
    small_index: LocalIndex, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = small_index.files["/simple/keras/"].decode()
    small_index.add_page("keras", page, '<a href="keras-3.1-py3-none-any.whl">gone</a>')
    output = tmp_path / "releases.json"
    known = ROW._replace(package="keras", version="3.1")
    withdrawn = ROW._replace(package="keras", version="2.9")
    output.write_text(document([known, withdrawn], "2026-01-01"), encoding="utf-8")
    words = ["--packages", "keras", "--cache", str(tmp_path / "cache"), "--output", str(output)]
    assert main(words) == 1
    assert "not read: keras 3.1" in capfd.readouterr().err
    versions = [(row.package, row.version) for row in read(str(output)).rows()]
    assert versions == [("keras", "3.0"), ("keras", "3.1"), ("nvidia-nccl-cu12", "2.1")]
