"""Reads the GPU architectures of NVIDIA's fat binaries in an ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from whygpu.host import limits
from whygpu.host.elf import BadElf, Buffer
from whygpu.host.elf_sections import sections_named

_SECTION_NAMES = (b".nv_fatbin", b"__nv_relfatbin")

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
    for start, end in sections_named(buffer, *_SECTION_NAMES):
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
