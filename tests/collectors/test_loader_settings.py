"""How the loader is built: told by itself, or known by where it lies."""

from __future__ import annotations

from typing import Any

import pytest

from whygpu.collectors.loader_settings import LoaderSettings, cached_paths, settings_of
from whygpu.host.elf import Identity
from whygpu.host.local import LocalHost
from whygpu.host.replay import ReplayHost
from whygpu.model.codec import encode

LOADER = "/lib64/ld-linux-x86-64.so.2"
QUESTION = f"run {LOADER} --list-diagnostics"

DEBIAN_2_36 = """\
auxv[0x0].a_type=0x21
dl_dst_lib="lib/x86_64-linux-gnu"
dl_hwcap=0x6
dl_hwcap_important=0x6
dl_hwcaps_subdirs="x86-64-v4:x86-64-v3:x86-64-v2"
dl_hwcaps_subdirs_active=0x6
dl_platform="haswell"
env_filtered[0x0]="PATH"
path.system_dirs[0x0]="/lib/x86_64-linux-gnu/"
path.system_dirs[0x1]="/usr/lib/x86_64-linux-gnu/"
version.version="2.36"
"""
LATER_FEDORA = """\
dl_dst_lib="lib64"
dl_hwcap=0x2
dl_hwcap_important=0x6
dl_hwcaps_subdirs="x86-64-v4:x86-64-v3:x86-64-v2"
dl_hwcaps_subdirs_active=0x7
dl_platform="x86_64"
path.system_dirs[0x0]="/lib64/"
path.system_dirs[0x1]="/usr/lib64/"
version.version="2.41"
"""


def machine(answers: dict[str, Any]) -> ReplayHost:
    return ReplayHost({"platform": encode(LocalHost().platform), "answers": answers})


def ended(code: int, stdout: str = "") -> dict[str, Any]:
    completed = {"code": code, "stdout": stdout, "stderr": "", "timed_out": False}
    return {"known": completed, "source": LOADER}


def test_a_loader_with_the_old_subfolders_as_well() -> None:
    settings = settings_of(machine({QUESTION: ended(0, DEBIAN_2_36)}), LOADER, "x86_64")
    assert settings == LoaderSettings(
        default_folders=("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"),
        subfolders=(
            *("glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2"),
            *("tls/haswell/avx512_1/x86_64", "tls/haswell/avx512_1", "tls/haswell/x86_64"),
            *("tls/haswell", "tls/avx512_1/x86_64", "tls/avx512_1", "tls/x86_64", "tls"),
            *("haswell/avx512_1/x86_64", "haswell/avx512_1", "haswell/x86_64", "haswell"),
            *("avx512_1/x86_64", "avx512_1", "x86_64"),
        ),
        lib_token="lib/x86_64-linux-gnu",
        platform_token="haswell",
        capabilities=("x86-64-v3", "x86-64-v2"),
    )


def test_a_loader_of_today() -> None:
    settings = settings_of(machine({QUESTION: ended(0, LATER_FEDORA)}), LOADER, "x86_64")
    assert settings.default_folders == ("/lib64", "/usr/lib64")
    assert settings.subfolders == (
        *("glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2"),
    )


@pytest.mark.parametrize(
    ("real_path", "folders", "token"),
    [
        (
            "/usr/lib/x86_64-linux-gnu/ld-2.31.so",
            ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"),
            "lib/x86_64-linux-gnu",
        ),
        ("/usr/lib64/ld-2.28.so", ("/lib64", "/usr/lib64"), "lib64"),
    ],
)
def test_a_loader_that_cannot_tell(real_path: str, folders: tuple[str, ...], token: str) -> None:
    facts = {
        "kind": "file",
        "mode": "-rwxr-xr-x",
        "size": 1,
        "group": "root",
        "usable": False,
        "real_path": real_path,
        "identity": "1:1",
    }
    answers = {QUESTION: ended(127), f"stat {LOADER}": {"known": facts, "source": LOADER}}
    settings = settings_of(machine(answers), LOADER, "x86_64")
    assert settings == LoaderSettings(folders, (), token, "x86_64", ())


@pytest.mark.parametrize(
    "answer", [{"absent": "x"}, {"unknown": "denied"}, {"known": "bm9uc2Vuc2U=", "source": "x"}]
)
def test_without_a_readable_cache_nothing_is_cached(answer: dict[str, str]) -> None:
    host = machine({"read_bytes /etc/ld.so.cache": answer})
    assert cached_paths(host, Identity("x86_64", 64), ()) == {}
