"""The targets of HIP code are read from the tables of its bundles, and damage ends the walk.

The layout was compared with jax-rocm60-plugin 0.5.0 (bundles) and jax-rocm7-plugin 0.12.0
(compressed ones).
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.test_fatbin import with_sections
from whygpu.host import hip_code
from whygpu.host.elf import BadElf

HOST = "host-x86_64-unknown-linux-gnu-"
PREFIX = "hipv4-amdgcn-amd-amdhsa--"


def bundle(*names: str, code: int = 5000) -> bytes:
    """A bundle that fills whole pages, as compilers write it."""
    table = b""
    place = 4096
    for name in names:
        size = 0 if name == HOST else code
        table += struct.pack("<3Q", place, size, len(name)) + name.encode()
        place += size
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)) + table
    return head.ljust(-(-place // 4096) * 4096, b"\0")


def targets_of(*bundles: bytes) -> tuple[str, ...]:
    return hip_code.targets(with_sections([(".hip_fatbin", b"".join(bundles))]))


def test_all_bundles_count_and_features_do_not() -> None:
    first = bundle(HOST, PREFIX + "gfx90a:sramecc+:xnack-", PREFIX + "gfx1100")
    second = bundle(HOST, PREFIX + "gfx1030", PREFIX + "gfx11-generic")
    assert targets_of(first, second) == ("gfx1030", "gfx11-generic", "gfx1100", "gfx90a")


def test_a_file_without_hip_code_has_no_targets() -> None:
    assert hip_code.targets(with_sections([(".text", bundle(PREFIX + "gfx90a"))])) == ()


def test_compressed_code_is_not_no_code() -> None:
    with pytest.raises(BadElf, match="compressed"):
        targets_of(b"CCOB" + bytes(5000))
    with pytest.raises(BadElf, match="compressed"):
        targets_of(bundle(PREFIX + "gfx90a"), b"CCOB" + bytes(5000))


def test_what_is_no_bundle_ends_the_walk() -> None:
    assert targets_of(bundle(PREFIX + "gfx90a"), bytes(4096), bundle(PREFIX + "gfx942")) == (
        "gfx90a",
    )


@pytest.mark.slow
def test_a_table_that_never_ends_is_refused() -> None:
    name = struct.pack("<3Q", 0, 0, 0)
    endless = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2**64 - 1) + name * (2**20 + 8)
    with pytest.raises(BadElf, match="more parts"):
        targets_of(endless)


GOOD = with_sections([(".hip_fatbin", bundle(HOST, PREFIX + "gfx90a", PREFIX + "gfx1100", code=9))])


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=30),
    st.integers(0, len(GOOD)),
)
def test_no_damage_leads_the_walk_astray(changes: list[tuple[int, int]], length: int) -> None:
    content = bytearray(GOOD)
    for place, value in changes:
        content[place] = value
    try:
        found = hip_code.targets(bytes(content[:length]))
    except BadElf:
        return
    assert all(target.startswith("gfx") for target in found)
