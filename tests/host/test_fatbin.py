"""GPU architectures are read from headers only, and damaged data ends the walk."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elfwriter import Library, write
from whygpu.host import fatbin
from whygpu.host.elf import BadElf

PTX, CUBIN, OTHER = 1, 2, 8


def entry(kind: int, number: int, flags: int = 0x11, payload: int = 100, header: int = 64) -> bytes:
    fields = (kind, 0x101, header, payload, 0, 0, 1, 7, number, 0, 0, flags)
    return struct.pack("<2HIQ2I2H3IQ", *fields).ljust(header, b"\0") + bytes(payload)


def container(*entries: bytes) -> bytes:
    content = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def with_sections(sections: Sequence[tuple[str, bytes]], bits: int = 64) -> bytes:
    """A shared object with these sections behind it."""
    machine = "x86_64" if bits == 64 else "i386"
    content = bytearray(write(Library(machine=machine, bits=bits)))
    names = b"\0"
    rows = [(0, 0, 0)]
    for name, section in (*sections, (".shstrtab", b"")):
        place = len(names)
        names += name.encode() + b"\0"
        section = names if name == ".shstrtab" else section
        rows.append((place, len(content), len(section)))
        content += section
    table = len(content)
    for name_at, start, size in rows:
        if bits == 64:
            content += struct.pack("<2I4Q2I2Q", name_at, 1, 0, 0, start, size, 0, 0, 1, 0)
        else:
            content += struct.pack("<10I", name_at, 1, 0, 0, start, size, 0, 0, 1, 0)
    place, form, sizes = (0x28, "<Q", 0x3A) if bits == 64 else (0x20, "<I", 0x2E)
    struct.pack_into(form, content, place, table)
    row_size = 64 if bits == 64 else 40
    struct.pack_into("<3H", content, sizes, row_size, len(rows), len(rows) - 1)
    return bytes(content)


@pytest.mark.parametrize("bits", [64, 32])
def test_machine_code_first_then_intermediate_code_by_number(bits: int) -> None:
    code = container(entry(PTX, 90), entry(CUBIN, 100), entry(CUBIN, 80), entry(CUBIN, 80))
    content = with_sections([(".text", b"code"), (".nv_fatbin", code)], bits)
    assert fatbin.architectures(content) == ("sm_80", "sm_100", "compute_90")


def test_code_for_one_architecture_only_has_its_letter() -> None:
    code = container(entry(CUBIN, 90, 0x102011), entry(CUBIN, 90, 0x2011))
    assert fatbin.architectures(with_sections([(".nv_fatbin", code)])) == ("sm_90", "sm_90a")


def test_padding_other_sections_and_long_headers() -> None:
    first = container(entry(CUBIN, 70, header=96), entry(OTHER, 61))
    second = container(entry(CUBIN, 75))
    sections = [
        (".nv_fatbin", first + bytes(24) + second),
        ("__nv_relfatbin", container(entry(PTX, 52))),
    ]
    assert fatbin.architectures(with_sections(sections)) == ("sm_70", "sm_75", "compute_52")


def test_a_section_with_a_longer_name_does_not_count() -> None:
    code = container(entry(CUBIN, 80))
    assert fatbin.architectures(with_sections([(".nv_fatbin_copy", code)])) == ()


def test_no_sections_at_all() -> None:
    assert fatbin.architectures(write(Library())) == ()


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text" * 40])
def test_what_is_no_elf_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadElf):
        fatbin.architectures(content)


def test_sizes_beyond_the_file_end_the_walk() -> None:
    huge = entry(CUBIN, 80, payload=10)[:8] + struct.pack("<Q", 1 << 63) + entry(CUBIN, 80)[16:64]
    code = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, (1 << 64) - 1) + huge + entry(CUBIN, 90)
    assert fatbin.architectures(with_sections([(".nv_fatbin", code)])) == ("sm_80",)


def test_entries_without_a_size_do_not_hold_the_walk_up() -> None:
    code = container(entry(CUBIN, 80), struct.pack("<2HI", CUBIN, 1, 0) + bytes(1 << 20))
    content = with_sections([(".nv_fatbin", code + b"\x50\xed\x55\xba" * 1000)])
    began = time.thread_time()
    assert fatbin.architectures(content) == ("sm_80",)
    assert time.thread_time() - began < 1


SAMPLE = with_sections([(".nv_fatbin", container(entry(CUBIN, 80), entry(PTX, 90)))])


@pytest.mark.slow
@settings(deadline=1000, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), max_size=30),
    st.integers(0, len(SAMPLE)),
)
def test_no_damage_leads_the_walk_astray(damage: list[tuple[int, int]], size: int) -> None:
    content = bytearray(SAMPLE)
    for place, value in damage:
        content[place] = value
    for damaged in (bytes(content), bytes(content[:size])):
        try:
            found = fatbin.architectures(damaged)
        except BadElf:
            continue
        assert all(name.startswith(("sm_", "compute_")) for name in found)
