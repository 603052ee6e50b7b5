"""A wheel behind range requests is the wheel, at a fraction of its bytes."""

from __future__ import annotations

import random

import pytest

from tests.package_index.local_index import LocalIndex
from whygpu.package_index.remote_wheel import RemoteFile, RemoteWheel
from whygpu.package_index.web import Web

WHEEL = "demo-1.0-py3-none-any.whl"
NOISE = random.Random(1).randbytes(6 << 20)


@pytest.fixture
def wheel(index: LocalIndex, web: Web) -> RemoteWheel:
    index.add_wheel(
        WHEEL,
        {
            "demo-1.0.data/purelib/demo/version.py": b"cuda = '12.8'\n",
            "demo/big.so": NOISE,
            "demo-1.0.dist-info/METADATA": b"Requires-Dist: numpy\nRequires-Dist: h5py\n",
        },
    )
    return RemoteWheel(web, f"{index.url}/files/{WHEEL}")


def test_members_are_found_where_they_get_installed(wheel: RemoteWheel) -> None:
    assert wheel.names() == ("demo/version.py", "demo/big.so", "demo-1.0.dist-info/METADATA")
    assert wheel.text(r"demo/version\.py") == "cuda = '12.8'\n"
    assert wheel.text(r"demo/missing\.py") is None
    assert wheel.metadata().get_all("Requires-Dist") == ["numpy", "h5py"]


def test_a_small_member_costs_little(wheel: RemoteWheel, web: Web) -> None:
    wheel.text(r"demo/version\.py")
    wheel.metadata()
    assert web.bytes_read < 300_000


def test_the_head_of_a_large_member(wheel: RemoteWheel, web: Web) -> None:
    assert b"".join(wheel.head("demo/big.so", 1_500_000)) == NOISE[:1_500_000]
    assert web.bytes_read < len(NOISE) / 2
    assert wheel.read("demo/big.so") == NOISE


def test_a_remote_file_reads_like_a_local_one(index: LocalIndex, web: Web) -> None:
    index.files["/noise"] = NOISE
    file = RemoteFile(web, f"{index.url}/noise")
    draw = random.Random(2)
    for _ in range(60):
        place, size = draw.randrange(len(NOISE)), draw.choice((0, 1, 30, 4096, 100_000, 700_000))
        if draw.random() < 0.5:
            file.seek(place)
        place = file.tell()
        assert file.read(size) == NOISE[place : place + size]
        assert file.tell() == min(place + size, len(NOISE))
    file.seek(-10, 2)
    assert file.read() == NOISE[-10:]
