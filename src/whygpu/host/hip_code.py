"""Reads the targets of the HIP code, which is for AMD GPUs, in an ELF file.

HIP code is a row of bundles, each aligned to a page. A bundle starts with a table of its entries:
where each one is, and its name, which ends in the target (gfx90a). The format is described in
<https://clang.llvm.org/docs/ClangOffloadBundler.html>.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from whygpu.host import limits
from whygpu.host.elf import BadElf, Buffer
from whygpu.host.elf_sections import sections_named

_SECTION_NAME = b".hip_fatbin"
_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED_MAGIC = b"CCOB"
_COUNT = struct.Struct("<Q")
_ENTRY = struct.Struct("<3Q")
_PAGE = 4096
_LONGEST_NAME = 256
_TARGET = re.compile(rb"hip\w*-amdgcn-amd-amdhsa-[^-]*-(gfx[0-9a-z-]+)")


def targets(buffer: Buffer) -> tuple[str, ...]:
    """The targets without their features (gfx90a, not gfx90a:xnack-), sorted.

    Only the tables are read. Raises BadElf if it is not an ELF file, or if its code is compressed.
    """
    found: set[str] = set()
    entries = 0
    for start, end in sections_named(buffer, _SECTION_NAME):
        for name in _entry_names(buffer, start, end):
            match = _TARGET.match(name)
            if match is not None:
                found.add(match[1].decode("ascii"))
            entries += 1
            if entries > limits.GPU_CODE_ENTRIES or len(found) > limits.GPU_ARCHITECTURES:
                raise BadElf("its HIP code has more parts than real files have")
    return tuple(sorted(found))


def _entry_names(buffer: Buffer, start: int, end: int) -> Iterator[bytes]:
    place = start
    while place + len(_MAGIC) + _COUNT.size <= end:
        if buffer[place : place + len(_COMPRESSED_MAGIC)] == _COMPRESSED_MAGIC:
            raise BadElf("its HIP code is compressed")
        if buffer[place : place + len(_MAGIC)] != _MAGIC:
            return
        (count,) = _COUNT.unpack_from(buffer, place + len(_MAGIC))
        entry = place + len(_MAGIC) + _COUNT.size
        bundle_end = entry
        for _ in range(count):
            if entry + _ENTRY.size > end:
                return
            offset, size, length = _ENTRY.unpack_from(buffer, entry)
            if length > _LONGEST_NAME:
                return
            entry += _ENTRY.size
            yield bytes(buffer[entry : entry + length])
            entry += length
            bundle_end = max(bundle_end, entry, place + offset + size)
        place += -(-(bundle_end - place) // _PAGE) * _PAGE
