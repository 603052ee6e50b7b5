"""Small files whose tables claim, or name, far more than there is."""

from __future__ import annotations

import pathlib
import struct

import pytest

from tests import bounded
from whygpu.host.local import LocalHost
from whygpu.model.observed import Unknown

ASK = """
from whygpu.host.local import LocalHost
print(getattr(LocalHost(), sys.argv[1])(sys.argv[2]))
"""
NEEDED, STRTAB, SYMTAB, STRSZ, HASH = 1, 5, 6, 10, 4
VERNEED, VERNEEDNUM, VERDEF, VERDEFNUM = 0x6FFFFFFE, 0x6FFFFFFF, 0x6FFFFFFC, 0x6FFFFFFD


def image(tags: list[tuple[int, int]], tables: bytes, tables_at: int) -> bytes:
    """An ELF file of one segment: its dynamic section, then tables. Offset is address."""
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in [*tags, (0, 0)])
    start = 64 + 2 * 56
    body = dynamic.ljust(tables_at - start, b"\0") + tables
    size = start + len(body)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<2HI3QI6H", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    segments = struct.pack("<2I6Q", 1, 5, 0, 0, 0, size, size, 4096)
    segments += struct.pack("<2I6Q", 2, 6, start, start, start, len(dynamic), len(dynamic), 8)
    return header + segments + body


def long_names() -> bytes:
    """Each of 60,000 needed libraries is a piece of one name of a megabyte."""
    at = 1 << 21
    tags = [(STRTAB, at), (STRSZ, 1 << 20)] + [(NEEDED, number) for number in range(60_000)]
    return image(tags, b"a" * (1 << 20), at)


def many_names() -> bytes:
    """60,000 needed libraries, each with the same name of 60 kB."""
    at = 1 << 21
    tags = [(STRTAB, at), (STRSZ, 60_001)] + [(NEEDED, 0)] * 60_000
    return image(tags, b"a" * 60_000 + b"\0", at)


def many_needs() -> bytes:
    """A dynamic section of four million entries."""
    return image([(NEEDED, 0)] * 4_000_000, b"", 64 + 112 + 64_000_016)


def version_chain() -> bytes:
    """A record of a version that is followed by itself, 2^32 times."""
    at = 1 << 12
    record = struct.pack("<2H3I", 1, 1, 0, 16, 0xFFFFFFFF) + struct.pack("<I2H2I", 0, 0, 2, 0, 0)
    names = b"a" * 60_000 + b"\0"
    tags = [(STRTAB, at + 64), (STRSZ, len(names)), (VERNEED, at), (VERNEEDNUM, 0xFFFFFFFF)]
    return image(tags, record.replace(b"\xff\xff\xff\xff", bytes(4)).ljust(64, b"\0") + names, at)


def many_symbols() -> bytes:
    """Symbols that are all named by one string of 60 kB."""
    at, count = 1 << 12, 40_000
    symbol = struct.pack("<I2BH2Q", 1, 0x10, 0, 1, 0, 0)
    names = b"\0" + b"a" * 60_000 + b"\0"
    hashed = struct.pack("<2I", 1, count)
    tables = hashed.ljust(64, b"\0") + symbol * count + names
    strings = at + 64 + 24 * count
    tags = [(STRTAB, strings), (STRSZ, len(names)), (SYMTAB, at + 64), (HASH, at)]
    return image(tags, tables, at)


@pytest.mark.parametrize(
    ("make", "question", "reason"),
    [
        (long_names, "elf", "longer than 64 KiB"),
        (many_names, "elf", "together are longer than 128 MiB"),
        (many_needs, "elf", "more than 65,536 entries"),
        (many_symbols, "symbols", "together are longer than 128 MiB"),
    ],
)
def test_an_elf_file_of_few_megabytes_takes_no_gigabytes(
    tmp_path: pathlib.Path, make: object, question: str, reason: str
) -> None:
    path = tmp_path / "libcuda.so.1"
    path.write_bytes(make())  # type: ignore[operator]
    ended = bounded.run(ASK, question, str(path))
    assert "Unknown" in ended.stdout, ended.stderr
    assert reason in ended.stdout
    assert ended.peak < bounded.LARGEST, ended.peak >> 20


def test_one_version_record_is_not_followed_for_ever(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "libcuda.so.1"
    path.write_bytes(version_chain())
    ended = bounded.run(ASK, "elf", str(path))
    assert ended.peak < bounded.LARGEST, ended.stderr


def fat_binary(entries: bytes, sections: int) -> bytes:
    """An ELF file with so many sections of GPU code that all lie in the same place."""
    names = b"\0.nv_fatbin\0".ljust(16, b"\0")
    container = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries
    table = 64 + len(names) + len(container)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<2HI3QI6H", 3, 62, 1, 0, 64, table, 0, 64, 56, 0, 64, sections + 1, 0)
    strings = struct.pack("<2I4Q2I2Q", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    code = struct.pack("<2I4Q2I2Q", 1, 1, 0, 0, 64 + len(names), len(container), 0, 0, 1, 0)
    return header + names + container + strings + code * sections


@pytest.mark.parametrize(
    ("numbers", "sections", "reason"),
    [
        (range(40_000), 1, "more architectures than exist"),
        ([80] * 20_000, 1_000, "more than 1,048,576 pieces"),
    ],
)
def test_gpu_code_that_never_ends(
    tmp_path: pathlib.Path, numbers: list[int], sections: int, reason: str
) -> None:
    entry = struct.Struct("<2HIQ2I2H3IQ")
    entries = b"".join(
        entry.pack(2, 1, entry.size, 0, 0, 0, 0, 0, number, 0, 0, 0) for number in numbers
    )
    path = tmp_path / "libcudart.so"
    path.write_bytes(fat_binary(entries, sections))
    answer = LocalHost().gpu_code(str(path))
    assert isinstance(answer, Unknown)
    assert reason in answer.reason


def test_a_loader_cache_whose_entries_share_one_long_name() -> None:
    count = 100_000
    header = struct.pack("<20s2IB3xI12x", b"glibc-ld.so.cache1.1", count, 0, 2, 0)
    strings = len(header) + 24 * count
    entries = struct.pack("<i3IQ", 0x0303, strings, strings, 0, 0) * count
    program = """
        from whygpu.host import loader_cache
        try:
            loader_cache.parse(sys.stdin.buffer.read())
        except loader_cache.BadCache as error:
            print(error)
    """
    for name in (b"a" * (1 << 20), b"a" * 4000 + b"\0"):
        ended = bounded.run(program, given=header + entries + name)
        assert "its names are too long" in ended.stdout, ended.stderr
        assert ended.peak < bounded.LARGEST
