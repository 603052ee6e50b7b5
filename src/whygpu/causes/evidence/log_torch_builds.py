"""The build of PyTorch that a log shows: the CUDA release in its version."""

from __future__ import annotations

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

_BUILD = late(
    # torch==2.1.0+cu118, PyTorch version: 2.1.0+cu118; in a session the value is on the next line.
    r"\b(?:torch|[Pp]y[Tt]orch)\b[^\n]{0,30}?\n?\s?['\"]?\d\.[\d.]{1,8}\+cu(?P<cuda>\d{2,3})\b"
)


def cuda_of_torch(log: Log) -> str:
    """12.1 for 2.1.0+cu121; empty if the log does not show it."""
    found = [match.groups["cuda"] or "" for match in log.find(_BUILD)]
    return release_of_label(found[-1]) if found else ""


def release_of_label(digits: str) -> str:
    """cu118 is CUDA 11.8, and xFormers writes 1108."""
    if len(digits) == 4:
        return f"{int(digits[:2])}.{int(digits[2:])}"
    return f"{digits[:-1]}.{digits[-1]}"
