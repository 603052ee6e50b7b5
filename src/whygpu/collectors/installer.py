"""How to install packages into the target: its Python, pip or uv, and the tool that manages it."""

from __future__ import annotations

import os.path

from whygpu.collectors import manager
from whygpu.collectors.interpreter import on_path, pyvenv
from whygpu.host.base import Host
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.target import Installer, Interpreter, Package

_MARKER = "EXTERNALLY-MANAGED"
"""The file next to the standard library with which a system forbids pip to change its Python."""


def collect(
    host: Host, interpreter: Interpreter, packages: Observed[tuple[Package, ...]]
) -> Installer:
    has_pip = _has_pip(host, interpreter, packages)
    return Installer(
        python=_command(host, interpreter.path),
        tool="uv" if not has_pip and _served_by_uv(host, interpreter) else "pip",
        externally_managed=_externally_managed(host, interpreter),
        has_pip=has_pip,
        manager=manager.collect(host, interpreter),
    )


def _command(host: Host, path: str) -> str:
    """The short name if a shell finds exactly this interpreter by it, else the path."""
    for name in ("python", "python3"):
        if on_path(host, name) == path:
            return name
    return path


def _has_pip(host: Host, interpreter: Interpreter, packages: Observed[tuple[Package, ...]]) -> bool:
    """By its metadata or, if packages were not read, by its folder. If unsure, True."""
    if isinstance(packages, Known):
        return any(item.name == "pip" for item in packages.value)
    found = [host.stat(os.path.join(path, "pip")) for path in interpreter.paths]
    return not found or not all(isinstance(fact, Absent) for fact in found)


def _served_by_uv(host: Host, interpreter: Interpreter) -> bool:
    return "uv" in pyvenv(host, interpreter.prefix) or on_path(host, "uv") is not None


def _externally_managed(host: Host, interpreter: Interpreter) -> bool:
    """False for a virtual or conda environment, whatever it was created from."""
    if interpreter.isolated:
        return False
    version = ".".join(interpreter.version.split(".")[:2])
    version += "t" if interpreter.free_threaded else ""
    library = next((path for path in interpreter.paths if _is_library(path, version)), None)
    return library is not None and isinstance(host.stat(os.path.join(library, _MARKER)), Known)


def _is_library(path: str, version: str) -> bool:
    return os.path.basename(path) == f"python{version}"
