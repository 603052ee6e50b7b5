"""Reads the loader's cache, /etc/ld.so.cache, which maps library names to files."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from whygpu.host import limits

_OLD_MAGIC = b"ld.so-1.7.0\0"
_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_ENTRY = struct.Struct("<i2I")
_NEW_HEADER = struct.Struct("<20s2IB3xI12x")
_NEW_ENTRY = struct.Struct("<i3IQ")
_EXTENSION_MAGIC = 0xEAA42174
_EXTENSION_SECTION = struct.Struct("<4I")
_CAPABILITY_SECTION = 1
_NAMED_CAPABILITY = 1 << 30
"""A flag in the upper half of an entry's capabilities: the lower half is an index of names."""

FLAGS = {
    ("x86_64", 64): 0x0303,
    ("i386", 32): 0x0003,
    ("aarch64", 64): 0x0A03,
    ("ppc64le", 64): 0x0503,
    ("s390x", 64): 0x0403,
    ("riscv64", 64): 0x1003,
    ("loongarch64", 64): 0x1103,
}
"""The flags that mark entries for a machine."""


class CacheEntry(NamedTuple):
    name: str
    path: str
    flags: int
    capability: str
    """The glibc-hwcaps subfolder it was found in; empty for an ordinary entry."""


class BadCache(ValueError):
    """The bytes are not a loader cache."""


def parse(content: bytes) -> tuple[CacheEntry, ...]:
    """The entries in the file's order; the loader takes the first that fits."""
    entries = tuple(islice(_entries(content), limits.CACHE_ENTRIES + 1))
    if len(entries) > limits.CACHE_ENTRIES:
        raise BadCache(f"it has more than {limits.CACHE_ENTRIES:,} entries")
    return entries


def _entries(content: bytes) -> Iterator[CacheEntry]:
    if content.startswith(_NEW_MAGIC):
        return _new_entries(content)
    if not content.startswith(_OLD_MAGIC):
        raise BadCache("it begins with neither of the two known signatures")
    start = len(_OLD_MAGIC) + 4
    (count,) = struct.unpack_from("<I", content.ljust(start, b"\0"), len(_OLD_MAGIC))
    strings = start + count * _OLD_ENTRY.size
    aligned = -(-strings // 8) * 8
    if content.startswith(_NEW_MAGIC, aligned):
        return _new_entries(content[aligned:])
    return _old_entries(content, start, strings)


def _old_entries(content: bytes, start: int, strings: int) -> Iterator[CacheEntry]:
    if strings > len(content):
        raise BadCache("it is cut short")
    texts = _Texts(content)
    for flags, name, path in _OLD_ENTRY.iter_unpack(content[start:strings]):
        yield CacheEntry(texts.at(strings + name), texts.at(strings + path), flags, "")


def _new_entries(content: bytes) -> Iterator[CacheEntry]:
    if len(content) < _NEW_HEADER.size:
        raise BadCache("it is cut short")
    _, count, _, _, extension = _NEW_HEADER.unpack_from(content)
    end = _NEW_HEADER.size + count * _NEW_ENTRY.size
    if end > len(content):
        raise BadCache("it is cut short")
    texts = _Texts(content)
    names = _capability_names(content, extension, texts)
    for flags, name, path, _, capabilities in _NEW_ENTRY.iter_unpack(
        content[_NEW_HEADER.size : end]
    ):
        capability = ""
        if capabilities >> 32 == _NAMED_CAPABILITY:
            index = capabilities & 0xFFFFFFFF
            if index >= len(names):
                continue
            capability = names[index]
        elif capabilities:
            # The bit masks of old releases. Such an entry always has an ordinary one next to it.
            continue
        yield CacheEntry(texts.at(name), texts.at(path), flags, capability)


def _capability_names(content: bytes, extension: int, texts: _Texts) -> tuple[str, ...]:
    if not extension or extension + 8 > len(content):
        return ()
    magic, count = struct.unpack_from("<2I", content, extension)
    end = extension + 8 + count * _EXTENSION_SECTION.size
    if magic != _EXTENSION_MAGIC or end > len(content):
        return ()
    for tag, _, offset, size in _EXTENSION_SECTION.iter_unpack(content[extension + 8 : end]):
        if tag == _CAPABILITY_SECTION and offset + size <= len(content):
            offsets = struct.unpack_from(f"<{size // 4}I", content, offset)
            return tuple(texts.at(place) for place in offsets)
    return ()


class _Texts:
    """The names and paths of one cache, with a limit on their total length."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._left = limits.CACHE_STRINGS

    def at(self, offset: int) -> str:
        end = self._content.find(b"\0", offset, offset + limits.CACHE_STRING + 1)
        if end < 0:
            end = min(offset + limits.CACHE_STRING + 1, len(self._content))
        self._left -= max(end - offset, 0)
        if end - offset > limits.CACHE_STRING or self._left < 0:
            raise BadCache("its names are too long")
        return self._content[offset:end].decode("utf-8", "replace")
