"""Reads the GPU architectures of the fat binaries in an ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from whygpu.host import limits
from whygpu.host.elf import BadElf, Buffer, identity

_SECTION_NAMES = (b".nv_fatbin", b"__nv_relfatbin")
_SECTION = {32: struct.Struct("<10I"), 64: struct.Struct("<2I4Q2I2Q")}
_SECTION_TABLE = {32: (0x20, "<I", 0x2E), 64: (0x28, "<Q", 0x3A)}
"""Where the ELF header stores the offset of the section table, its format, and its three sizes."""

_CONTAINER = struct.Struct("<IHHQ")
_CONTAINER_MAGIC = 0xBA55ED50
_MAGIC_BYTES = _CONTAINER_MAGIC.to_bytes(4, "little")
_ENTRY = struct.Struct("<2HIQ2I2H3IQ")
_PTX, _CUBIN = 1, 2
_ARCHITECTURE_SPECIFIC = 0x100000
"""The flag of code for one architecture only: sm_90a."""


def architectures(buffer: Buffer) -> tuple[str, ...]:
    """Machine code as sm_80, intermediate code as compute_90; machine code first, by number.

    Only headers are read, never the code between them. Raises BadElf if it is not an ELF file.
    """
    found: set[tuple[bool, int, str]] = set()
    entries = 0
    for start, end in _fat_sections(buffer):
        for kind, number, flags in _entries(buffer, start, end):
            if kind in (_PTX, _CUBIN):
                suffix = "a" if flags & _ARCHITECTURE_SPECIFIC else ""
                found.add((kind == _PTX, number, suffix))
            entries += 1
            if entries > limits.GPU_CODE_ENTRIES:
                raise BadElf(f"it has more than {limits.GPU_CODE_ENTRIES:,} pieces of GPU code")
            if len(found) > limits.GPU_ARCHITECTURES:
                raise BadElf("its GPU code names more architectures than exist")
    return tuple(
        f"{'compute' if intermediate else 'sm'}_{number}{suffix}"
        for intermediate, number, suffix in sorted(found)
    )


def _fat_sections(buffer: Buffer) -> Iterator[tuple[int, int]]:
    """Start and end of each section with GPU code, within the file."""
    found = identity(buffer[:64])
    if found is None or len(buffer) < 64:
        raise BadElf("invalid ELF header" if len(buffer) >= 64 else "file too short")
    place, number_format, sizes = _SECTION_TABLE[found.bits]
    (table,) = struct.unpack_from(number_format, buffer, place)
    entry_size, count, names_index = struct.unpack_from("<3H", buffer, sizes)
    layout = _SECTION[found.bits]
    size = len(buffer)
    if not table or entry_size != layout.size or table + count * entry_size > size:
        return
    sections = [layout.unpack_from(buffer, table + index * entry_size) for index in range(count)]
    if names_index >= count:
        return
    names = sections[names_index][4]
    for section in sections:
        name, start, length = names + section[0], section[4], section[5]
        if any(buffer[name : name + len(known) + 1] == known + b"\0" for known in _SECTION_NAMES):
            yield min(start, size), min(start + length, size)


def _entries(buffer: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Kind, architecture number and flags of every entry in the containers between two offsets."""
    place = start
    while place + _CONTAINER.size <= end:
        magic, _, header_size, length = _CONTAINER.unpack_from(buffer, place)
        if magic != _CONTAINER_MAGIC:
            # Skip the padding between containers.
            place = buffer.find(_MAGIC_BYTES, place + 1, end)
            if place < 0:
                return
            continue
        header_size = max(header_size, _CONTAINER.size)
        container_end = min(place + header_size + length, end)
        yield from _container(buffer, place + header_size, container_end)
        place = container_end


def _container(buffer: Buffer, place: int, end: int) -> Iterator[tuple[int, int, int]]:
    while place + _ENTRY.size <= end:
        kind, _, header_size, length, _, _, _, _, number, _, _, flags = _ENTRY.unpack_from(
            buffer, place
        )
        if header_size < _ENTRY.size:
            return
        yield kind, number, flags
        place += header_size + length
