"""Compressed logs: recognised by their first bytes, unpacked within bounds, whatever they hold."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest

from tests import bounded
from tests.cases import each
from whygpu.errors import UsageError
from whygpu.readers.unpacking import Unpacked

LOG = b"".join(b"step %d of 20000\n" % number for number in range(20_000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    for place in range(0, len(data), size):
        yield data[place : place + size]


def read(data: bytes, size: int = 1 << 18) -> tuple[bytes, str]:
    log = Unpacked(in_pieces(data, size), "train.log")
    return b"".join(log), log.unread


@each("name", PACKERS)
def test_a_compressed_log_is_read_in_pieces_of_any_size(name: str) -> None:
    packed = PACKERS[name](LOG)
    for size in (1, 7, 4096, 1 << 20):
        assert read(packed, size) == (LOG, "")


@each("name", PACKERS)
def test_archives_one_behind_the_other_are_one_log(name: str) -> None:
    pack = PACKERS[name]
    packed = pack(LOG) + pack(b"") + pack(b"the end\n")
    for size in (1, 5, 1 << 20):
        assert read(packed, size) == (LOG + b"the end\n", "")


@each("name", PACKERS)
def test_what_can_be_unpacked_of_an_archive_that_is_cut_short(name: str) -> None:
    packed = PACKERS[name](LOG * 30)
    text, unread = read(packed[: len(packed) - 8])
    assert (LOG * 30).startswith(text)
    assert unread == f"the {name} data are truncated: the end is missing"


def test_what_can_be_unpacked_of_a_damaged_archive() -> None:
    packed = bytearray(gzip.compress(LOG, 1))
    packed[-4000:-3000] = b"\xff" * 1000
    text, unread = read(bytes(packed), 64)
    assert len(text) > 1000
    assert LOG.startswith(text[:1000])
    assert "cannot be unpacked (gzip: " in unread


def test_what_comes_behind_an_archive() -> None:
    packed = gzip.compress(LOG)
    assert read(packed + bytes(512)) == (LOG, "")
    text, unread = read(packed + b"not packed\n")
    assert (text, unread) == (LOG, "the data after its gzip data were not read")


@each("text", [b"", b"B", b"BZh9 is how a line may begin\n", b"\x1f\x8b", b"PK", LOG])
def test_what_is_not_compressed_is_left_as_it_is(text: bytes) -> None:
    assert read(text, 1) == (text, "")


def a_zip_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train.log", LOG)
    return file.getvalue()


def a_tar_archive() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("train.log")
        member.size = len(LOG)
        archive.addfile(member, io.BytesIO(LOG))
    return file.getvalue()


@each(
    ("data", "command"),
    [
        (a_zip_archive(), "unzip -p FILE | whygpu explain"),
        (a_tar_archive(), "tar -xOf FILE | whygpu explain"),
        (gzip.compress(a_tar_archive()), "tar -xOf FILE | whygpu explain"),
        (b"\x04\x22\x4d\x18" + bytes(20), "lz4cat FILE | whygpu explain"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_command_that_unpacks_it(
    data: bytes, command: str
) -> None:
    with pytest.raises(UsageError) as caught:
        list(Unpacked([data], "my log"))
    assert command in str(caught.value)


def test_a_program_is_no_log() -> None:
    program = pathlib.Path(sys.executable).resolve().read_bytes()[:4096]
    for data in (program, gzip.compress(program)):
        with pytest.raises(UsageError, match="is a program or library, not a log"):
            list(Unpacked([data], "python"))
    with pytest.raises(UsageError, match="is an HDF5 file, not a log"):
        list(Unpacked([b"\x89HDF\r\n\x1a\n" + bytes(20)], "model.h5"))


def bomb_of_zeros(pack: str) -> bytes:
    """Three gigabytes, made without ever having them: members of a megabyte, one by one."""
    if pack == "xz":
        return lzma.compress(bytes(1 << 26)) * 48
    return PACKERS[pack](bytes(1 << 24)) * 192


@pytest.mark.parametrize("name", ["gzip", "xz"])
def test_a_bomb_is_read_up_to_a_limit(tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(bomb_of_zeros(name))
    ended = bounded.whygpu("explain", str(path))
    assert ended.code == 4
    assert "only the first 2 GiB of the unpacked log were read" in " ".join(ended.stdout.split())


def test_zstd_is_read_or_the_command_is_said(tmp_path: pathlib.Path) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("there is no zstd to pack a log with")
    path = tmp_path / "train.log.zst"
    packed = subprocess.run(["zstd", "-q", "-c"], input=LOG, capture_output=True, check=True)
    path.write_bytes(packed.stdout)
    log = Unpacked([path.read_bytes()], str(path))
    if find_spec("zstandard") or sys.version_info >= (3, 14):
        assert (b"".join(log), log.unread) == (LOG, "")
    else:
        with pytest.raises(UsageError, match=re.escape("zstdcat FILE | whygpu explain")):
            list(log)
