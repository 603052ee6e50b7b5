"""Finds sections of an ELF file by their names."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from whygpu.host.elf import BadElf, Buffer, identity

_SECTION = {32: struct.Struct("<10I"), 64: struct.Struct("<2I4Q2I2Q")}
_SECTION_TABLE = {32: (0x20, "<I", 0x2E), 64: (0x28, "<Q", 0x3A)}
"""Where the ELF header stores the offset of the section table, its format, and its three sizes."""


def sections_named(buffer: Buffer, *wanted: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each section with one of these names, within the file.

    Raises BadElf if it is not an ELF file.
    """
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
        if any(buffer[name : name + len(known) + 1] == known + b"\0" for known in wanted):
            yield min(start, size), min(start + length, size)
