"""The settings of this machine's dynamic loader: its folders, subfolders and cache."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from whygpu.host import loader_cache
from whygpu.host.base import Host
from whygpu.host.elf import Identity
from whygpu.model.observed import Known

CACHE_FILE = "/etc/ld.so.cache"

_LAST_WITH_LEGACY_SUBFOLDERS = (2, 36)
_LEGACY_CAPABILITIES = {"x86_64": {1: "x86_64", 2: "avx512_1"}, "aarch64": {8: "atomics"}}
"""Bits of the loader's capability mask that older releases had subfolders for, by machine."""

_SETTING = re.compile(r'^([\w.]+)(?:\[0x[0-9a-f]+\])?=(?:"(.*)"|0x([0-9a-f]+))$', re.M)


class LoaderSettings(NamedTuple):
    default_folders: tuple[str, ...]
    subfolders: tuple[str, ...]
    """Subfolders with code for this processor; each folder is searched after its subfolders."""
    lib_token: str
    """The value of $LIB."""
    platform_token: str
    """The value of $PLATFORM."""
    capabilities: tuple[str, ...]
    """Names of glibc-hwcaps subfolders that this processor can use, best first."""


def settings_of(host: Host, loader: str, machine: str) -> LoaderSettings:
    """Query the loader itself. Releases before 2.33 cannot answer; their location decides."""
    answer = host.run((loader, "--list-diagnostics"), timeout=5.0)
    if isinstance(answer, Known) and answer.value.code == 0:
        return _from_diagnostics(answer.value.stdout, machine)
    return _by_convention(host, loader, machine)


def _from_diagnostics(text: str, machine: str) -> LoaderSettings:
    values: dict[str, list[str]] = {}
    for name, quoted, hexadecimal in _SETTING.findall(text):
        values.setdefault(name, []).append(quoted or hexadecimal)

    def number(name: str) -> int:
        return int(values.get(name, ["0"])[0] or "0", 16)

    def word(name: str) -> str:
        return values.get(name, [""])[0]

    known = word("dl_hwcaps_subdirs").split(":")
    usable = number("dl_hwcaps_subdirs_active")
    capabilities = tuple(name for bit, name in enumerate(known) if name and usable >> bit & 1)
    subfolders = tuple(f"glibc-hwcaps/{name}" for name in capabilities)
    if _version(word("version.version")) <= _LAST_WITH_LEGACY_SUBFOLDERS:
        mask = number("dl_hwcap") & number("dl_hwcap_important")
        legacy = [
            name for bit, name in _LEGACY_CAPABILITIES.get(machine, {}).items() if mask >> bit & 1
        ]
        subfolders += _legacy_subfolders((*legacy, word("dl_platform"), "tls"))
    return LoaderSettings(
        default_folders=tuple(folder.rstrip("/") for folder in values["path.system_dirs"]),
        subfolders=subfolders,
        lib_token=word("dl_dst_lib"),
        platform_token=word("dl_platform"),
        capabilities=capabilities,
    )


def _legacy_subfolders(words: tuple[str, ...]) -> tuple[str, ...]:
    """Every combination of the words, most specific first; the last word has the most weight."""
    words = tuple(word for word in words if word)
    combinations = (
        "/".join(word for bit, word in reversed(list(enumerate(words))) if mask >> bit & 1)
        for mask in range((1 << len(words)) - 1, 0, -1)
    )
    return tuple(dict.fromkeys(combinations))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2]) or (99,)


def _by_convention(host: Host, loader: str, machine: str) -> LoaderSettings:
    facts = host.stat(loader)
    place = os.path.dirname(facts.value.real_path) if isinstance(facts, Known) else ""
    triplet = os.path.basename(place)
    if "-linux-gnu" in triplet:
        own = f"lib/{triplet}"
        folders: tuple[str, ...] = (f"/{own}", f"/usr/{own}", "/lib", "/usr/lib")
    else:
        own = "lib64"
        folders = ("/lib64", "/usr/lib64")
    return LoaderSettings(folders, (), own, machine, ())


def cached_paths(host: Host, own: Identity, capabilities: tuple[str, ...]) -> Mapping[str, str]:
    """The path in the loader's cache for each library name; empty if the cache is unreadable."""
    content = host.read_bytes(CACHE_FILE)
    if not isinstance(content, Known):
        return {}
    try:
        entries = loader_cache.parse(content.value)
    except loader_cache.BadCache:
        # The loader also continues without a cache that it cannot read.
        return {}
    flags = loader_cache.FLAGS.get((own.machine, own.bits))
    return _best((entry for entry in entries if flags in (None, entry.flags)), capabilities)


def _best(
    entries: Iterable[loader_cache.CacheEntry], capabilities: tuple[str, ...]
) -> Mapping[str, str]:
    ranks = {name: rank for rank, name in enumerate((*capabilities, ""))}
    chosen: dict[str, tuple[int, str]] = {}
    for entry in entries:
        rank = ranks.get(entry.capability)
        if rank is not None and rank < chosen.get(entry.name, (len(ranks), ""))[0]:
            chosen[entry.name] = (rank, entry.path)
    return {name: path for name, (_, path) in chosen.items()}
