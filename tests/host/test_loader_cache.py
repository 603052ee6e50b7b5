"""The loader's cache in its formats, and the one of this machine."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess

import pytest

from tests.cases import each
from whygpu.host.loader_cache import FLAGS, BadCache, CacheEntry, parse

X86_64 = FLAGS["x86_64", 64]
CAPABILITY = 1 << 62


def new_cache(entries: list[tuple[str, str, int, int]], capabilities: list[str]) -> bytes:
    strings = b""
    start = 48 + 24 * len(entries)

    def place(text: str) -> int:
        nonlocal strings
        offset = start + len(strings)
        strings += text.encode() + b"\0"
        return offset

    rows = [(flags, place(name), place(path), 0, mask) for name, path, flags, mask in entries]
    names = [place(name) for name in capabilities]
    strings += bytes(-(start + len(strings)) % 4)
    extension = start + len(strings)
    section = struct.pack("<4I", 1, 0, extension + 24, 4 * len(names))
    tail = struct.pack("<2I", 0xEAA42174, 1) + section + struct.pack(f"<{len(names)}I", *names)
    header = struct.pack(
        "<20s2IB3xI12x", b"glibc-ld.so.cache1.1", len(rows), len(strings), 2, extension
    )
    return header + b"".join(struct.pack("<i3IQ", *row) for row in rows) + strings + tail


def old_cache(entries: list[tuple[str, str, int]]) -> bytes:
    strings = b""
    rows = b""
    for name, path, flags in entries:
        rows += struct.pack("<i2I", flags, len(strings), len(strings) + len(name) + 1)
        strings += f"{name}\0{path}\0".encode()
    return b"ld.so-1.7.0\0" + struct.pack("<I", len(entries)) + rows + strings


NEW = new_cache(
    [
        ("libcux.so", "/opt/glibc-hwcaps/x86-64-v3/libcux.so", X86_64, CAPABILITY | 1),
        ("libcux.so", "/opt/old/haswell/libcux.so", X86_64, 1 << 3),
        ("libcux.so", "/opt/libcux.so", X86_64, 0),
        ("libcux.so", "/opt32/libcux.so", 3, 0),
    ],
    ["x86-64-v2", "x86-64-v3"],
)


def test_the_new_format() -> None:
    assert parse(NEW) == (
        CacheEntry("libcux.so", "/opt/glibc-hwcaps/x86-64-v3/libcux.so", X86_64, "x86-64-v3"),
        CacheEntry("libcux.so", "/opt/libcux.so", X86_64, ""),
        CacheEntry("libcux.so", "/opt32/libcux.so", 3, ""),
    )


def test_the_old_format_alone_and_with_the_new_one_behind() -> None:
    old = old_cache([("libcuy.so", "/old/libcuy.so", X86_64)])
    assert parse(old) == (CacheEntry("libcuy.so", "/old/libcuy.so", X86_64, ""),)
    # The old strings are left out where the new format follows: it holds the strings of both.
    head = b"ld.so-1.7.0\0" + struct.pack("<I", 1) + struct.pack("<i2I", X86_64, 0, 0)
    assert parse(head.ljust(32, b"\0") + NEW) == parse(NEW)


@each("content", [b"", b"something else", NEW[:40], NEW[:100], NEW[:19]])
def test_what_is_no_cache_is_refused(content: bytes) -> None:
    with pytest.raises(BadCache):
        parse(content)


@each("size", range(144, len(NEW), 7))
def test_a_cut_cache_never_crashes_the_reader(size: int) -> None:
    assert len(parse(NEW[:size])) <= 3


def test_the_cache_of_this_machine() -> None:
    ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
    if ldconfig is None or not os.path.exists("/etc/ld.so.cache"):
        pytest.skip("this machine has no ldconfig or no cache")
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    expected = [line.split()[0] for line in listed.splitlines() if " => " in line]
    with open("/etc/ld.so.cache", "rb") as file:
        entries = parse(file.read())
    assert [entry.name for entry in entries] == expected
