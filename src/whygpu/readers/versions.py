"""Versions of software that a log mentions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.log import Line, Version
from whygpu.tables.distributions import PROVIDERS

_NUMBER = r"(\d+(?:\.\d+)*(?:(?:a|b|rc|\.?dev|\.?post)\d+)?)"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (of, re.compile(pattern))
    for of, pattern in (
        ("driver", rf"libcuda reported version is: {_NUMBER}"),
        ("kernel-module", rf"kernel reported version is: {_NUMBER}"),
        ("kernel-module", rf"kernel version {_NUMBER} does not match DSO version"),
        ("driver", rf"kernel version [\d.]+ does not match DSO version {_NUMBER}"),
        ("kernel-module", rf"NVIDIA UNIX \S+ Kernel Module +{_NUMBER}"),
        ("driver", rf"Driver Version: {_NUMBER}"),
        ("driver", rf"Nvidia driver version: {_NUMBER}"),
        ("kernel-module", rf"NVIDIA UNIX Open Kernel Module for \S+ +{_NUMBER}"),
        ("cuda-of-driver", rf"CUDA Version: {_NUMBER}"),
        ("cudnn", rf"Loaded cuDNN version {_NUMBER}"),
        ("cudnn", rf"Loaded runtime CuDNN library: {_NUMBER}"),
        ("cudnn-built", rf"source was compiled with:? {_NUMBER}"),
        (
            "tensorflow",
            rf"(?i:tensorflow(?:[-_](?:gpu|cpu|intel))?)(?: version:?|==|-| ) ?['\"]?v?"
            # Other packages begin with the same word: tensorflow-6.1.0 is one of theirs.
            rf"(?=[012]\.){_NUMBER}",
        ),
        ("torch", rf"\b(?:torch|[Pp]y[Tt]orch)(?: version:?|==|-| ) ?['\"]?v?{_NUMBER}"),
        ("jaxlib", rf"\bjaxlib(?: version|==|-) ?{_NUMBER}"),
        ("jax", rf"\bjax(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("keras", rf"\b[Kk]eras(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("numpy", rf"\b[Nn]um[Pp]y(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("protobuf", rf"\bprotobuf(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("python", r"[/\\][Pp]ython-?(\d\.\d{1,2})(?=[/\\. ])"),
        ("python", r"[/\\][Pp]ython(3\d{1,2})[/\\]"),
        ("cuda", rf"[/\\]cuda-{_NUMBER}(?=[/\\: ])"),
        ("cuda", rf"compilation tools, release {_NUMBER}"),
        ("cuda", rf"(?i:cuda(?:[ -]?toolkit)?)[ /-]v?{_NUMBER}"),
    )
)
_TELLING = re.compile(r"version|Module|==|\d\.\d|[Pp]ython3", re.I)
_LONGEST = 2000


_SHOWN = re.compile(r"Name: (?P<of>[\w.-]{2,40})\s{0,4}")
_SHOWN_VERSION = re.compile(rf"Version: {_NUMBER}(?:\+[\w.]{{1,40}})?\s{{0,4}}")
"""`pip show` prints the name and the version on two lines."""
_MODULES = {row.name: row.module for row in PROVIDERS}


def versions(lines: Sequence[Line]) -> tuple[Version, ...]:
    found: list[Version] = []
    seen: set[tuple[str, str]] = set()
    shown = ""
    for line in lines:
        text = line.text[:_LONGEST]
        if (name := _SHOWN.fullmatch(text)) is not None:
            shown = name["of"].lower().replace("_", "-")
            continue
        if not _TELLING.search(text):
            shown = ""
            continue
        if shown and (version := _SHOWN_VERSION.fullmatch(text)) is not None:
            found.append(Version(line.number, _MODULES.get(shown, shown), version[1]))
        shown = ""
        for of, pattern in _PATTERNS:
            for match in pattern.finditer(text):
                if (of, match[1]) not in seen:
                    seen.add((of, match[1]))
                    found.append(Version(line.number, of, match[1]))
    return tuple(found)
