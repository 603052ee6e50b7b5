"""Reads ELF files as the dynamic loader does, from the dynamic section only."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import NamedTuple, Union

from whygpu.host import limits
from whygpu.model.libraries import ElfFacts, VersionNeed
from whygpu.model.units import size_text

Buffer = Union[bytes, mmap.mmap]


class BadElf(ValueError):
    """The file cannot be loaded. The message is that of the GNU loader, if it has one."""


_TOO_SHORT = "file too short"
_NO_HEADER = "invalid ELF header"
_BYTE_ORDER = "ELF file data encoding not little-endian"
_IDENT_VERSION = "ELF file version ident does not match current one"
_OS_ABI = "ELF file OS ABI invalid"
_PADDING = "nonzero padding in e_ident"
_FILE_VERSION = "ELF file version does not match current one"

UNIVERSAL_REFUSALS = frozenset(
    {_TOO_SHORT, _NO_HEADER, _BYTE_ORDER, _IDENT_VERSION, _OS_ABI, _PADDING, _FILE_VERSION}
)
"""Errors that the loader reports before it checks the machine of a file."""

MACHINES = {
    3: "i386",
    8: "mips",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
"""From e_machine to the name that uname prints."""

_HEADER_SIZE = {32: 52, 64: 64}
_SEGMENT = {32: struct.Struct("<8I"), 64: struct.Struct("<2I6Q")}
_DYNAMIC = {32: struct.Struct("<iI"), 64: struct.Struct("<qQ")}
_SYMBOL = {32: struct.Struct("<3I2BH"), 64: struct.Struct("<I2BH2Q")}
_VERSION_NEED = struct.Struct("<2H3I")
_VERSION_NEED_ENTRY = struct.Struct("<I2H2I")
_VERSION_DEFINITION = struct.Struct("<4H3I")

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_ET_EXEC, _ET_DYN = 2, 3

_DT_NULL, _DT_NEEDED = 0, 1
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 4, 5, 6, 10
_DT_SONAME, _DT_RPATH, _DT_RUNPATH = 14, 15, 29
_DT_GNU_HASH = 0x6FFFFEF5
_DT_VERSYM, _DT_FLAGS_1 = 0x6FFFFFF0, 0x6FFFFFFB
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = range(0x6FFFFFFC, 0x70000000)

_DF_1_NODEFLIB = 0x800
_WEAK_VERSION = 2
_HIDDEN_VERSION = 0x8000
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_FIRST_OWN_VERSION = 2
"""Version indices 0 and 1 stand for local and unversioned symbols."""


class Identity(NamedTuple):
    machine: str
    bits: int


class _Segment(NamedTuple):
    address: int
    offset: int
    size: int


def identity(header: bytes) -> Identity | None:
    """The machine that a file is for; None if its first bytes are not an ELF header."""
    if len(header) < 20 or header[:4] != b"\x7fELF" or header[4] not in (1, 2):
        return None
    number = int.from_bytes(header[18:20], "big" if header[5] == 2 else "little")
    return Identity(MACHINES.get(number, f"machine {number}"), 32 * header[4])


def facts(buffer: Buffer) -> ElfFacts:
    """The facts that affect loading. Raises BadElf if the loader would refuse the file."""
    return _Image(buffer).facts()


def symbols(buffer: Buffer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Dynamic symbols that the file defines, and those that it requires.

    The format is that of nm: `name@@VERSION` for a default version, `name@VERSION` for another one
    and for every required version, and the plain name if there is no version.
    """
    return _Image(buffer).symbols()


class _Image:
    """The loaded view of a file. No read goes beyond the file, whatever its tables say."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._identity, kind, segment_table, segment_count = _header(buffer)
        self._bits = self._identity.bits
        self._segments: list[_Segment] = []
        self._interpreter: str | None = None
        dynamic: _Segment | None = None
        for kind_of_segment, segment in self._program_headers(segment_table, segment_count):
            if kind_of_segment == _PT_LOAD:
                self._segments.append(segment)
            elif kind_of_segment == _PT_DYNAMIC and segment.size:
                dynamic = segment
            elif kind_of_segment == _PT_INTERP:
                text = buffer[segment.offset : segment.offset + min(segment.size, 4096)]
                self._interpreter = text.split(b"\0")[0].decode("utf-8", "replace")
        self._refuse_incomplete()
        if dynamic is None and kind == _ET_DYN:
            raise BadElf("object file has no dynamic section")
        self._needed: list[int] = []
        self._tags: dict[int, int] = {}
        self._strings_left = limits.ELF_STRINGS
        if dynamic is not None:
            self._read_dynamic(dynamic)
        self._strings, self._strings_end = self._string_table()

    def facts(self) -> ElfFacts:
        tags = self._tags
        runpath = self._folders(_DT_RUNPATH)
        return ElfFacts(
            machine=self._identity.machine,
            bits=self._bits,
            soname=self._string(tags[_DT_SONAME]) if _DT_SONAME in tags else None,
            needed=tuple(self._string(offset) for offset in self._needed),
            rpath=self._folders(_DT_RPATH),
            runpath=runpath,
            interpreter=self._interpreter,
            no_default_folders=bool(tags.get(_DT_FLAGS_1, 0) & _DF_1_NODEFLIB),
            version_needs=tuple(
                VersionNeed(library, tuple(name for _, name, weak in entries if not weak))
                for library, entries in self._version_needs()
            ),
            versions_defined=tuple(dict.fromkeys(self._version_definitions().values())),
        )

    def symbols(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        versions = self._version_definitions()
        for _, entries in self._version_needs():
            versions.update((index, name) for index, name, _ in entries)
        defined: list[str] = []
        required: list[str] = []
        for name, binding, is_defined, version in self._symbol_table():
            version_name = versions.get(version & ~_HIDDEN_VERSION)
            has_version = version & ~_HIDDEN_VERSION >= _FIRST_OWN_VERSION and version_name
            self._spend(len(version_name) if version_name else 0)
            if not is_defined:
                if binding == _GLOBAL:
                    required.append(f"{name}@{version_name}" if has_version else name)
            elif has_version:
                separator = "@" if version & _HIDDEN_VERSION else "@@"
                defined.append(f"{name}{separator}{version_name}")
            else:
                defined.append(name)
        return tuple(defined), tuple(required)

    def _program_headers(self, table: int, count: int) -> Iterator[tuple[int, _Segment]]:
        layout = _SEGMENT[self._bits]
        if table + count * layout.size > len(self._buffer):
            raise BadElf("cannot read file data")
        for index in range(count):
            fields = layout.unpack_from(self._buffer, table + index * layout.size)
            if self._bits == 64:
                kind, _, offset, address, _, size, _, _ = fields
            else:
                kind, offset, address, _, size, _, _, _ = fields
            yield kind, _Segment(address, offset, size)

    def _refuse_incomplete(self) -> None:
        if not self._segments:
            raise BadElf("object file has no loadable segments")
        size = len(self._buffer)
        promised = max(segment.offset + segment.size for segment in self._segments)
        # The rest of the last page reads as zeros; a page beyond it is a bus error.
        if promised > -(-size // mmap.PAGESIZE) * mmap.PAGESIZE:
            raise BadElf(
                f"the file is truncated: it has {size} of {promised} bytes, "
                "and loading it ends in a bus error (SIGBUS)"
            )

    def _read_dynamic(self, dynamic: _Segment) -> None:
        offset = self._offset(dynamic.address)
        if offset is None:
            raise BadElf("the dynamic section is outside the file")
        layout = _DYNAMIC[self._bits]
        count = min(dynamic.size, len(self._buffer) - offset) // layout.size
        content = self._buffer[offset : offset + min(count, limits.ELF_RECORDS) * layout.size]
        for tag, value in layout.iter_unpack(content):
            if tag == _DT_NULL:
                return
            if tag == _DT_NEEDED:
                self._needed.append(value)
            else:
                self._tags[tag] = value
        if count > limits.ELF_RECORDS:
            raise BadElf(f"its dynamic section has more than {limits.ELF_RECORDS:,} entries")

    def _string_table(self) -> tuple[int, int]:
        """Its start and end. It is not copied: TensorFlow's has 90 MB."""
        offset = self._table(_DT_STRTAB)
        if offset is None:
            if self._needed or _DT_SONAME in self._tags:
                raise BadElf("the string table is outside the file")
            return 0, 0
        return offset, min(offset + self._tags.get(_DT_STRSZ, 0), len(self._buffer))

    def _offset(self, address: int) -> int | None:
        """The file offset of an address in the loaded image."""
        for segment in self._segments:
            if segment.address <= address < segment.address + segment.size:
                offset = address - segment.address + segment.offset
                return offset if offset < len(self._buffer) else None
        return None

    def _table(self, tag: int) -> int | None:
        return self._offset(self._tags[tag]) if tag in self._tags else None

    def _string(self, offset: int) -> str:
        start = min(self._strings + offset, self._strings_end)
        furthest = min(start + limits.ELF_STRING + 1, self._strings_end)
        end = self._buffer.find(b"\0", start, furthest)
        if end < 0:
            end = furthest
        if end - start > limits.ELF_STRING:
            most = size_text(limits.ELF_STRING)
            raise BadElf(f"a name in it is longer than {most}")
        self._spend(end - start)
        return self._buffer[start:end].decode("utf-8", "replace")

    def _spend(self, count: int) -> None:
        """Limit the total: names may overlap, so that a small file can have very many long ones."""
        self._strings_left -= count
        if self._strings_left < 0:
            most = size_text(limits.ELF_STRINGS)
            raise BadElf(f"its names together are longer than {most}")

    def _folders(self, tag: int) -> tuple[str, ...]:
        text = self._string(self._tags[tag]) if tag in self._tags else ""
        return tuple(text.split(":")) if text else ()

    def _unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...] | None:
        if offset < 0 or offset + layout.size > len(self._buffer):
            return None
        return layout.unpack_from(self._buffer, offset)

    def _version_needs(self) -> Iterator[tuple[str, list[tuple[int, str, bool]]]]:
        """Each library, with (index, version, weak) for every version required of it."""
        place = self._table(_DT_VERNEED)
        left = limits.ELF_RECORDS
        for _ in range(min(self._tags.get(_DT_VERNEEDNUM, 0), limits.ELF_RECORDS)):
            record = None if place is None else self._unpack(_VERSION_NEED, place)
            if place is None or record is None:
                return
            _, count, library, first, following = record
            entries = list(self._need_entries(place + first, min(count, left)))
            yield self._string(library), entries
            left -= len(entries)
            if not following:
                return
            place += following

    def _need_entries(self, place: int, count: int) -> Iterator[tuple[int, str, bool]]:
        for _ in range(count):
            entry = self._unpack(_VERSION_NEED_ENTRY, place)
            if entry is None:
                return
            _, flags, index, name, following = entry
            yield index & ~_HIDDEN_VERSION, self._string(name), bool(flags & _WEAK_VERSION)
            if not following:
                return
            place += following

    def _version_definitions(self) -> dict[int, str]:
        """The names of the versions that this file defines, by their index."""
        names: dict[int, str] = {}
        place = self._table(_DT_VERDEF)
        for _ in range(min(self._tags.get(_DT_VERDEFNUM, 0), limits.ELF_RECORDS)):
            record = None if place is None else self._unpack(_VERSION_DEFINITION, place)
            if place is None or record is None:
                break
            _, _, index, _, _, first, following = record
            name = self._unpack(struct.Struct("<I"), place + first)
            if name is not None:
                names[index & ~_HIDDEN_VERSION] = self._string(name[0])
            if not following:
                break
            place += following
        return names

    def _symbol_table(self) -> Iterator[tuple[str, int, bool, int]]:
        """Name, binding, whether it is defined, and version index of each global symbol."""
        offset = self._table(_DT_SYMTAB)
        if offset is None:
            return
        layout = _SYMBOL[self._bits]
        count = min(self._symbol_count(), (len(self._buffer) - offset) // layout.size)
        if count > limits.ELF_SYMBOLS:
            raise BadElf(f"it has more than {limits.ELF_SYMBOLS:,} symbols")
        table = self._buffer[offset : offset + count * layout.size]
        versions = self._version_indices(count)
        for index, fields in enumerate(layout.iter_unpack(table)):
            if self._bits == 64:
                name, info, other, section, _, _ = fields
            else:
                name, _, _, info, other, section = fields
            binding, visible = info >> 4, other & 3 in (0, 3)
            if name and visible and binding in (_GLOBAL, _WEAK, _UNIQUE):
                yield self._string(name), binding, section != 0, versions[index]

    def _version_indices(self, count: int) -> tuple[int, ...]:
        offset = self._table(_DT_VERSYM)
        if offset is None or offset + 2 * count > len(self._buffer):
            return (0,) * count
        return struct.unpack_from(f"<{count}H", self._buffer, offset)

    def _symbol_count(self) -> int:
        """Read from the hash tables of the symbols, because the dynamic section does not say it."""
        offset = self._table(_DT_HASH)
        if offset is not None:
            header = self._unpack(struct.Struct("<2I"), offset)
            return header[1] if header else 0
        return self._count_by_gnu_hash() or self._count_by_string_table()

    def _count_by_gnu_hash(self) -> int:
        offset = self._table(_DT_GNU_HASH)
        header = None if offset is None else self._unpack(struct.Struct("<4I"), offset)
        if offset is None or header is None:
            return 0
        bucket_count, first_symbol, filter_words, _ = header
        buckets = offset + 16 + filter_words * self._bits // 8
        chains = buckets + 4 * bucket_count
        if chains > len(self._buffer):
            return 0
        if bucket_count > limits.ELF_SYMBOLS:
            raise BadElf(f"its hash table has more than {limits.ELF_SYMBOLS:,} buckets")
        last = max(struct.unpack_from(f"<{bucket_count}I", self._buffer, buckets), default=0)
        if last < first_symbol:
            return 0
        for index in range(last, last + limits.ELF_RECORDS):
            link = self._unpack(struct.Struct("<I"), chains + 4 * (index - first_symbol))
            if link is None:
                return 0
            if link[0] & 1:
                return index + 1
        return 0

    def _count_by_string_table(self) -> int:
        """For a file that defines nothing and has no useful hash table: linkers put the string
        table directly after the symbols."""
        span = self._tags.get(_DT_STRTAB, 0) - self._tags.get(_DT_SYMTAB, 0)
        return max(span, 0) // _SYMBOL[self._bits].size


def _header(buffer: Buffer) -> tuple[Identity, int, int, int]:
    """Identity, file type, and the offset and number of the program headers."""
    if len(buffer) < _HEADER_SIZE[32]:
        raise BadElf(_TOO_SHORT)
    start = buffer[: _HEADER_SIZE[64]]
    if start[:4] != b"\x7fELF":
        raise BadElf(_NO_HEADER)
    found = identity(start)
    if found is None:
        raise BadElf(_NO_HEADER)
    if len(buffer) < _HEADER_SIZE[found.bits]:
        raise BadElf(_TOO_SHORT)
    if start[5] != 1:
        raise BadElf(_BYTE_ORDER)
    if start[6] != 1:
        raise BadElf(_IDENT_VERSION)
    if start[7] not in (0, 3):
        raise BadElf(_OS_ABI)
    if any(start[9:16]):
        raise BadElf(_PADDING)
    if found.bits == 64:
        kind, _, version, _, table, _, _, _, entry_size, count = struct.unpack_from(
            "<2HI3QI3H", start, 16
        )
    else:
        kind, _, version, _, table, _, _, _, entry_size, count = struct.unpack_from(
            "<2HI3II3H", start, 16
        )
    if version != 1:
        raise BadElf(_FILE_VERSION)
    if kind not in (_ET_EXEC, _ET_DYN):
        raise BadElf("only ET_DYN and ET_EXEC can be loaded")
    if entry_size != _SEGMENT[found.bits].size:
        raise BadElf("ELF file's phentsize not the expected size")
    return found, kind, table, count
