"""Machines written by hand: a transcript says only what is there, the rest is absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whygpu.host.base import Completed, FileFacts, Platform
from whygpu.host.replay import ReplayHost
from whygpu.model.codec import encode
from whygpu.model.observed import Absent, Known, Unknown

PLATFORM = {
    "system": "Linux",
    "kernel": "6.8.0-40-generic",
    "machine": "x86_64",
    "cores": 16,
    "python": "/usr/bin/python3",
    "libc": "glibc 2.39",
    "home": "/home/someone",
    "user": "someone",
    "host_name": "somewhere",
}


def host(
    answers: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    **platform: Any,
) -> ReplayHost:
    """A machine that answers these questions; bare values are known ones."""
    transcript = {
        "platform": encode(Platform(**{**PLATFORM, **platform})),
        "environ": dict(environ or {}),
        "answers": {question: _answer(value) for question, value in (answers or {}).items()},
    }
    silent = ("read", "read_bytes", "list", "stat", "elf", "disk")
    return ReplayHost(transcript, absent=silent)


def _answer(value: Any) -> Any:
    if isinstance(value, Known | Absent | Unknown):
        return encode(value)
    return {"known": encode(value), "source": "transcript"}


def file(real_path: str, size: int = 1 << 21) -> FileFacts:
    return FileFacts("file", "-rwxr-xr-x", size, "root", False, real_path, real_path)


def folder(real_path: str) -> FileFacts:
    return FileFacts("folder", "drwxr-xr-x", 0, "root", False, real_path, real_path)


def node(
    path: str, *, usable: bool = True, mode: str = "crw-rw-rw-", group: str = "root"
) -> FileFacts:
    return FileFacts("character-device", mode, 0, group, usable, path, path)


def printed(stdout: str = "", *, code: int = 0, stderr: str = "") -> Completed:
    return Completed(code, stdout, stderr, False)


HUNG = Completed(-9, "", "", True)
