"""Reads /proc for some processes and prints one JSON object; run as a subprocess.

A process that hangs in a driver may hold the lock of its memory, and reading its /proc files then
blocks. Therefore the caller waits for this process with a time limit. A fact is {"value": ...},
{"absent": where} or {"unknown": why}.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

LARGEST = 1 << 24

MOST_ANCESTORS = 100

_PARENT = re.compile(rb"^PPid:\s+(\d+)", re.MULTILINE)
_UID = re.compile(rb"^Uid:\s+(\d+)", re.MULTILINE)

Fact = dict[str, Any]


def main() -> None:
    """Names of variables, separated by commas, then the processes' numbers."""
    names = frozenset(sys.argv[1].split(","))
    above = ancestors()
    print("\n" + json.dumps({pid: process(pid, names, above) for pid in sys.argv[2:]}))


def ancestors() -> frozenset[str]:
    """Those who asked: whygpu or the program that it is a part of, and what started that."""
    found: list[str] = []
    pid = str(os.getppid())
    while pid not in ("0", "1") and len(found) < MOST_ANCESTORS:
        found.append(pid)
        parent = fact(f"/proc/{pid}/status", _parent)
        if "value" not in parent:
            break
        pid = parent["value"]
    return frozenset(found)


def process(pid: str, names: frozenset[str], above: frozenset[str]) -> dict[str, Fact]:
    folder = f"/proc/{pid}"
    return {
        "asking": {"value": pid in above},
        "yours": fact(f"{folder}/status", _is_yours),
        "files": fact(f"{folder}/maps", _mapped_files),
        "environ": fact(f"{folder}/environ", lambda content: _variables(content, names)),
        "words": fact(f"{folder}/cmdline", lambda content: [w for w in _texts(content) if w]),
    }


def fact(path: str, read: Callable[[bytes], Any]) -> Fact:
    try:
        with open(path, "rb") as file:
            return {"value": read(file.read(LARGEST))}
    except (FileNotFoundError, ProcessLookupError):
        return {"absent": path}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return {"unknown": f"{path}: {reason.lower()}"}


def _is_yours(status: bytes) -> bool:
    line = _UID.search(status)
    if line is None:
        raise ValueError("it names no user")
    return int(line[1]) == os.getuid()


def _parent(status: bytes) -> str:
    line = _PARENT.search(status)
    if line is None:
        raise ValueError("it names no parent")
    return line[1].decode()


def _mapped_files(maps: bytes) -> list[str]:
    """The files in the process's memory, each once."""
    if not maps:
        raise ValueError("it is empty, because the process is ending")
    lines = (line.split(None, 5) for line in maps.decode("utf-8", "replace").splitlines())
    return sorted({fields[5] for fields in lines if len(fields) == 6 and fields[5][0] == "/"})


def _variables(environ: bytes, names: Iterable[str]) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _texts(environ))
    return {name: value for name, _, value in pairs if name in names}


def _texts(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\0")
