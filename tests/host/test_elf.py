"""ELF files are read as the loader reads them, and no file can lead the reader astray."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import struct
import sys
import time
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import each
from tests.elfwriter import Library, write
from whygpu.host import elf
from whygpu.model.libraries import ElfFacts, VersionNeed

SYSTEM_LIBRARIES = sorted(
    {
        os.path.realpath(path)
        for pattern in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libz.so.1", "libgcc_s.so.1")
        for folder in ("/lib64", "/usr/lib64", "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu")
        for path in glob.glob(f"{folder}/{pattern}")
    }
    | {os.path.realpath(sys.executable)}
)

FULL = Library(
    soname="libcufull.so.1",
    needed=["libcuone.so", "libc.so.6"],
    rpath="$ORIGIN/a:/b",
    runpath="$ORIGIN:",
    defines=["plain", "first@V1", "second@V2"],
    requires=["puts@GLIBC_2.2.5", "anything"],
    wishes=["perhaps"],
    version_needs={"libcuone.so": ["ONE_1", "ONE_2"]},
    provider={"GLIBC_2.2.5": "libc.so.6"},
    no_default_folders=True,
    interpreter="/lib64/ld-linux-x86-64.so.2",
)


@pytest.mark.parametrize(("machine", "bits"), [("x86_64", 64), ("aarch64", 64), ("i386", 32)])
def test_everything_that_loading_depends_on(machine: str, bits: int) -> None:
    content = write(Library(**{**vars(FULL), "machine": machine, "bits": bits}))
    assert elf.facts(content) == ElfFacts(
        machine=machine,
        bits=bits,
        soname="libcufull.so.1",
        needed=("libcuone.so", "libc.so.6"),
        rpath=("$ORIGIN/a", "/b"),
        runpath=("$ORIGIN", ""),
        interpreter="/lib64/ld-linux-x86-64.so.2",
        no_default_folders=True,
        version_needs=(
            VersionNeed("libcuone.so", ("ONE_1", "ONE_2")),
            VersionNeed("libc.so.6", ("GLIBC_2.2.5",)),
        ),
        versions_defined=("libcufull.so.1", "V1", "V2"),
    )
    assert elf.symbols(content) == (
        ("plain", "first@@V1", "second@@V2"),
        ("puts@GLIBC_2.2.5", "anything"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", SYSTEM_LIBRARIES)
def test_pyelftools_sees_the_same(path: str) -> None:
    with open(path, "rb") as file:
        content = file.read()
    assert_like_pyelftools(content)


def assert_like_pyelftools(content: bytes) -> None:
    facts = elf.facts(content)
    oracle: Any = ELFFile(io.BytesIO(content))
    (dynamic,) = (each for each in oracle.iter_segments() if isinstance(each, DynamicSegment))
    tags: list[Any] = list(dynamic.iter_tags())
    assert list(facts.needed) == [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
    sonames = [tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"]
    assert facts.soname == (sonames[0] if sonames else None)
    for name, folders in (("rpath", facts.rpath), ("runpath", facts.runpath)):
        texts = [getattr(tag, name) for tag in tags if tag.entry.d_tag == f"DT_{name.upper()}"]
        assert ":".join(folders) == (texts[0] if texts else "")
    needs = oracle.get_section_by_name(".gnu.version_r")
    assert facts.version_needs == tuple(
        VersionNeed(
            library.name,
            tuple(entry.name for entry in entries if not entry.entry["vna_flags"] & 2),
        )
        for library, entries in (needs.iter_versions() if needs else ())
    )
    definitions = oracle.get_section_by_name(".gnu.version_d")
    names = [next(iter(aux)).name for _, aux in definitions.iter_versions()] if definitions else []
    assert facts.versions_defined == tuple(dict.fromkeys(names))
    assert_same_symbols(content, oracle)


def assert_same_symbols(content: bytes, oracle: Any) -> None:
    defined, required = elf.symbols(content)
    visible = [
        symbol
        for symbol in oracle.get_section_by_name(".dynsym").iter_symbols()
        if symbol.name
        and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS")
        and symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED")
    ]
    assert [name.partition("@")[0] for name in defined] == [
        symbol.name for symbol in visible if symbol["st_shndx"] != "SHN_UNDEF"
    ]
    assert [name.partition("@")[0] for name in required] == [
        symbol.name
        for symbol in visible
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
    ]


@each("path", SYSTEM_LIBRARIES)
def test_section_headers_are_not_needed(path: str) -> None:
    with open(path, "rb") as file:
        content = file.read()
    place = 0x28 if content[4] == 2 else 0x20
    width = 8 if content[4] == 2 else 4
    stripped = content[:place] + bytes(width) + content[place + width :]
    assert elf.facts(stripped) == elf.facts(content)
    assert elf.symbols(stripped) == elf.symbols(content)


GOOD = write(FULL)


def patched(place: int, content: bytes) -> bytes:
    return GOOD[:place] + content + GOOD[place + len(content) :]


@each(
    ("content", "message"),
    [
        (b"", "file too short"),
        (GOOD[:63], "file too short"),
        (b"GROUP ( libfoo.so )" * 9, "invalid ELF header"),
        (patched(4, b"\7"), "invalid ELF header"),
        (patched(5, b"\2"), "ELF file data encoding not little-endian"),
        (patched(6, b"\2"), "ELF file version ident does not match current one"),
        (patched(7, b"\x09"), "ELF file OS ABI invalid"),
        (patched(9, b"\1"), "nonzero padding in e_ident"),
        (patched(16, b"\1\0"), "only ET_DYN and ET_EXEC can be loaded"),
        (patched(20, b"\2"), "ELF file version does not match current one"),
        (patched(54, b"\1\0"), "ELF file's phentsize not the expected size"),
        (patched(56, b"\0\0"), "object file has no loadable segments"),
        (GOOD[:64], "cannot read file data"),
        (patched(64 + 2 * 56, struct.pack("<I", 9)), "object file has no dynamic section"),
    ],
)
def test_a_broken_file_is_refused_in_the_loaders_words(content: bytes, message: str) -> None:
    with pytest.raises(elf.BadElf) as caught:
        elf.facts(content)
    assert str(caught.value) == message


def test_a_file_that_is_cut_short() -> None:
    whole = write(Library(defines=[f"symbol{index}" for index in range(1000)]))
    with pytest.raises(elf.BadElf, match=f"it has 9000 of {len(whole)} bytes"):
        elf.facts(whole[:9000])


def test_only_the_header_is_needed_to_know_the_machine() -> None:
    assert elf.identity(GOOD[:20]) == ("x86_64", 64)
    assert elf.identity(write(Library(machine="i386", bits=32))[:64]) == ("i386", 32)
    assert elf.identity(b"\x7fELF\2\1\1" + bytes(11) + b"\x39\x30") == ("machine 12345", 64)
    assert elf.identity(GOOD[:19]) is None
    assert elf.identity(b"#!/bin/sh\n" * 9) is None


def test_a_weak_version_is_not_required() -> None:
    content = write(Library(version_needs={"libcux.so": ["V1"]}))
    entry = struct.pack("<2H", 0, 2)
    place = content.index(entry, content.index(struct.pack("<2H", 1, 1)) + 16)
    weak = content[:place] + struct.pack("<2H", 2, 2) + content[place + 4 :]
    assert elf.facts(content).version_needs == (VersionNeed("libcux.so", ("V1",)),)
    assert elf.facts(weak).version_needs == (VersionNeed("libcux.so", ()),)


@pytest.mark.slow
def test_records_that_share_entries_do_not_hold_the_reader_up() -> None:
    """Each of 2000 records claims the 2000 entries of the last one for itself, too."""
    count = 2000
    needs = {f"lib{index}.so": ["W"] for index in range(count)}
    versions = [f"V{index}" for index in range(count)]
    content = bytearray(write(Library(version_needs={**needs, "libcux.so": versions})))
    first = content.index(struct.pack("<2H", 1, 1))
    for index in range(count):
        place = first + 32 * index
        _, _, name, _, following = struct.unpack_from("<2H3I", content, place)
        entries = 32 * (count - index) + 16
        struct.pack_into("<2H3I", content, place, 1, 0xFFFF, name, entries, following)
    began = time.thread_time()
    assert len(elf.facts(bytes(content)).version_needs) == count + 1
    assert time.thread_time() - began < 1


@pytest.mark.slow
@settings(deadline=1000, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=30),
    st.integers(0, len(GOOD)),
)
def test_no_damage_leads_the_reader_astray(damage: list[tuple[int, int]], size: int) -> None:
    content = bytearray(GOOD)
    for place, value in damage:
        content[place] = value
    for read in (elf.facts, elf.symbols):
        for damaged in (bytes(content), bytes(content[:size])):
            with contextlib.suppress(elf.BadElf):
                read(damaged)
