"""Writes small ELF shared objects that the real loader can open, so that tests need no compiler."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MACHINES = {"x86_64": 62, "aarch64": 183, "i386": 3}
_WORD_RELOCATION = {"x86_64": 6, "aarch64": 1025, "i386": 6}
_RETURN = {"x86_64": b"\xc3", "aarch64": bytes.fromhex("c0035fd6"), "i386": b"\xc3"}

_SYMBOL_SIZE = {64: 24, 32: 16}
_HEADER_SIZE = {64: 64, 32: 52}
_SEGMENT_SIZE = {64: 56, 32: 32}


@dataclass(frozen=True)
class Library:
    """What a shared object says of itself. Symbols are `name` or `name@VERSION`."""

    soname: str | None = None
    needed: Sequence[str] = ()
    rpath: str | None = None
    runpath: str | None = None
    defines: Sequence[str] = ()
    requires: Sequence[str] = ()
    """Undefined strong symbols."""
    wishes: Sequence[str] = ()
    """Undefined weak symbols."""
    version_needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Library to the versions required of it; those of `requires` need not be repeated."""
    provider: Mapping[str, str] = field(default_factory=dict)
    """Version to the library it is required of."""
    no_default_folders: bool = False
    interpreter: str | None = None
    machine: str = "x86_64"
    bits: int = 64
    code: bytes = b""
    """What every function does; by default it returns at once."""


class _Strings:
    def __init__(self) -> None:
        self.content = b"\0"

    def add(self, text: str) -> int:
        place = len(self.content)
        self.content += text.encode() + b"\0"
        return place


class _Layout:
    """Tables one after the other; the file is mapped as a whole, so offset is address."""

    def __init__(self, start: int) -> None:
        self.content = b""
        self._start = start

    def add(self, table: bytes) -> int:
        self.content += b"\0" * (-(self._start + len(self.content)) % 8)
        place = self._start + len(self.content)
        self.content += table
        return place


def write(library: Library) -> bytes:
    """The bytes of the shared object."""
    strings = _Strings()
    segments = 4 if library.interpreter else 3
    layout = _Layout(_HEADER_SIZE[library.bits] + segments * _SEGMENT_SIZE[library.bits])
    code = layout.add(library.code or _RETURN[library.machine])
    versions = _Versions(library)
    symbols = [*library.defines, *library.requires, *library.wishes]
    symbol_table = layout.add(_symbol_table(library, strings, code))
    tags: list[tuple[int, int]] = [(1, strings.add(name)) for name in library.needed]
    for tag, text in ((14, library.soname), (15, library.rpath), (29, library.runpath)):
        if text is not None:
            tags.append((tag, strings.add(text)))
    tags.append((4, layout.add(_hash_table(library, symbols))))
    if versions.used:
        tags.append((0x6FFFFFF0, layout.add(versions.indices(symbols))))
        needs, definitions = versions.needs(strings), versions.definitions(strings)
        if needs:
            tags += [(0x6FFFFFFE, layout.add(needs)), (0x6FFFFFFF, len(versions.by_library))]
        if definitions:
            tags += [(0x6FFFFFFC, layout.add(definitions)), (0x6FFFFFFD, len(versions.own) + 1)]
    tags += _relocations(library, layout)
    if library.no_default_folders:
        tags.append((0x6FFFFFFB, 0x800))
    interpreter = (library.interpreter or "").encode() + b"\0"
    interpreter_at = layout.add(interpreter)
    tags += [(5, layout.add(strings.content)), (10, len(strings.content))]
    tags += [(6, symbol_table), (11, _SYMBOL_SIZE[library.bits]), (0, 0)]
    form = "<qQ" if library.bits == 64 else "<iI"
    dynamic = b"".join(struct.pack(form, *tag) for tag in tags)
    dynamic_at = layout.add(dynamic)
    size = dynamic_at + len(dynamic)
    headers = [
        _segment(library, 1, 7, 0, size, 0x1000),
        _segment(library, 2, 6, dynamic_at, len(dynamic), 8),
        # Without this note old loaders make the stack executable, and new ones refuse the file.
        _segment(library, 0x6474E551, 6, 0, 0, 16),
    ]
    if library.interpreter:
        headers.insert(0, _segment(library, 3, 4, interpreter_at, len(interpreter), 1))
    return _header(library, len(headers)) + b"".join(headers) + layout.content


def _header(library: Library, segments: int) -> bytes:
    wide = library.bits == 64
    mark = b"\x7fELF" + bytes((2 if wide else 1, 1, 1)) + bytes(9)
    size = _HEADER_SIZE[library.bits]
    return mark + struct.pack(
        "<2HI3QI6H" if wide else "<2HI3II6H",
        *(3, MACHINES[library.machine], 1, 0, size, 0, 0, size),
        *(_SEGMENT_SIZE[library.bits], segments, 0, 0, 0),
    )


def _segment(library: Library, kind: int, flags: int, place: int, size: int, align: int) -> bytes:
    if library.bits == 64:
        return struct.pack("<2I6Q", kind, flags, place, place, place, size, size, align)
    return struct.pack("<8I", kind, place, place, place, size, size, flags, align)


def _symbol_table(library: Library, strings: _Strings, code: int) -> bytes:
    table = bytes(_SYMBOL_SIZE[library.bits])
    groups = ((library.defines, 0x12, 1, code), (library.requires, 0x12, 0, 0))
    for names, info, section, value in (*groups, (library.wishes, 0x22, 0, 0)):
        for name in names:
            place = strings.add(name.partition("@")[0])
            if library.bits == 64:
                table += struct.pack("<I2BH2Q", place, info, 0, section, value, 1 if section else 0)
            else:
                table += struct.pack("<3I2BH", place, value, 1 if section else 0, info, 0, section)
    return table


def _hash_table(library: Library, symbols: Sequence[str]) -> bytes:
    """One bucket whose chain runs through every symbol, the defined ones first."""
    count = len(symbols) + 1
    links = [index + 1 if index < len(symbols) else 0 for index in range(1, count)]
    return struct.pack(f"<3I{count}I", 1, count, 1 if symbols else 0, 0, *links)


def _relocations(library: Library, layout: _Layout) -> list[tuple[int, int]]:
    """One pointer per undefined symbol for the loader to fill in: it must find each of them."""
    first = len(library.defines) + 1
    count = len(library.requires) + len(library.wishes)
    if not count or library.bits != 64:
        return []
    slots = layout.add(bytes(8 * count))
    kind = _WORD_RELOCATION[library.machine]
    entries = b"".join(
        struct.pack("<3Q", slots + 8 * index, (first + index) << 32 | kind, 0)
        for index in range(count)
    )
    return [(7, layout.add(entries)), (8, len(entries)), (9, 24)]


class _Versions:
    """Numbers the versions of a library: its own from 2 on, then those that it requires."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.own = list(dict.fromkeys(_version(name) for name in library.defines if "@" in name))
        self.by_library: dict[str, list[str]] = {
            name: list(versions) for name, versions in library.version_needs.items()
        }
        for name in (*library.requires, *library.wishes):
            version = _version(name)
            if version:
                wanted = self.by_library.setdefault(library.provider.get(version, version), [])
                if version not in wanted:
                    wanted.append(version)
        required = [version for versions in self.by_library.values() for version in versions]
        self._numbers = {name: 2 + index for index, name in enumerate(self.own)}
        self._required = {name: 2 + len(self.own) + i for i, name in enumerate(required)}
        self.used = bool(self._numbers or self._required)

    def indices(self, symbols: Sequence[str]) -> bytes:
        numbers = [0]
        for position, name in enumerate(symbols):
            table = self._numbers if position < len(self._library.defines) else self._required
            numbers.append(table.get(_version(name), 1))
        return struct.pack(f"<{len(numbers)}H", *numbers)

    def needs(self, strings: _Strings) -> bytes:
        table = b""
        for position, (library, versions) in enumerate(self.by_library.items()):
            last = position == len(self.by_library) - 1
            following = 0 if last else 16 + 16 * len(versions)
            table += struct.pack("<2H3I", 1, len(versions), strings.add(library), 16, following)
            for index, name in enumerate(versions):
                following = 0 if index == len(versions) - 1 else 16
                number = self._required[name]
                table += struct.pack("<I2H2I", _hash(name), 0, number, strings.add(name), following)
        return table

    def definitions(self, strings: _Strings) -> bytes:
        if not self.own:
            return b""
        names = [self._library.soname or "base", *self.own]
        table = b""
        for index, name in enumerate(names):
            following = 0 if index == len(names) - 1 else 28
            base = 1 if index == 0 else 0
            table += struct.pack("<4H3I", 1, base, index + 1, 1, _hash(name), 20, following)
            table += struct.pack("<2I", strings.add(name), 0)
        return table


def _version(symbol: str) -> str:
    return symbol.partition("@")[2]


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value ^= (value & 0xF0000000) >> 24
        value &= 0x0FFFFFFF
    return value
