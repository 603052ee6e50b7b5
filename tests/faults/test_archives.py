"""Archives that claim to hold far more than they can."""

from __future__ import annotations

import pathlib
import zipfile

import pytest

from tests import bounded
from tests.comparer.inside import part

LOAD = """
import importlib, os
sys.path.insert(0, sys.argv[1])
from whygpu_work import archives
try:
    archives.check(sys.argv[2])
except archives.Bomb as error:
    print(error)
"""
INSIDE = pathlib.Path(part("archives").__file__).parents[1]


def archive(path: pathlib.Path, members: dict[str, int]) -> None:
    """Zeros of these sizes, compressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name, size in members.items():
            with made.open(name, "w", force_zip64=True) as member:
                for _ in range(size >> 20):
                    member.write(bytes(1 << 20))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"config.json": 70 << 20}, "its config.json unpacks to 73.4 MB"),
        ({"model.weights.h5": 1200 << 20}, "unpack to 1.26 GB, which real data never does"),
        ({str(number): 0 for number in range(20_001)}, "it has 20001 members"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: pathlib.Path, members: dict[str, int], why: str
) -> None:
    path = tmp_path / "model.keras"
    archive(path, members)
    ended = bounded.run(LOAD, str(INSIDE), str(path))
    assert why in ended.stdout, ended.stderr
    assert ended.peak < bounded.LARGEST


def test_zeros_that_are_compressed_well_are_no_bomb(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "inputs.npz"
    archive(path, {"x.npy": 100 << 20})
    part("archives").check(str(path))


@pytest.mark.parametrize("content", [b"", b"PK\5\6" + bytes(18), b"PK\5\6" + b"\xff" * 18])
def test_what_is_no_archive_is_left_to_the_loader(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    part("archives").check(str(path))
