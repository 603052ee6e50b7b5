"""How packages get into the target environment: which command starts it, and pip or uv."""

from __future__ import annotations

import os.path

from whygpu.collectors.interpreter import on_path, pyvenv
from whygpu.host.base import Host
from whygpu.model.observed import Known, Observed
from whygpu.model.target import Installer, Interpreter, Package

_MARKER = "EXTERNALLY-MANAGED"
"""The file beside the standard library with which a system forbids pip to change its Python."""


def collect(
    host: Host, interpreter: Interpreter, packages: Observed[tuple[Package, ...]]
) -> Installer:
    return Installer(
        python=_command(host, interpreter.path),
        tool="uv" if _made_by_uv(host, interpreter, packages) else "pip",
        externally_managed=_externally_managed(host, interpreter),
    )


def _command(host: Host, path: str) -> str:
    """The short name, where a shell finds this very interpreter by it."""
    for name in ("python", "python3"):
        if on_path(host, name) == path:
            return name
    return path


def _made_by_uv(
    host: Host, interpreter: Interpreter, packages: Observed[tuple[Package, ...]]
) -> bool:
    if not isinstance(packages, Known) or any(item.name == "pip" for item in packages.value):
        return False
    return "uv" in pyvenv(host, interpreter.prefix)


def _externally_managed(host: Host, interpreter: Interpreter) -> bool:
    """A virtual or conda environment is its user's own, whatever it was made from."""
    if interpreter.isolated:
        return False
    version = ".".join(interpreter.version.split(".")[:2])
    library = next((path for path in interpreter.paths if _is_library(path, version)), None)
    return library is not None and isinstance(host.stat(os.path.join(library, _MARKER)), Known)


def _is_library(path: str, version: str) -> bool:
    return os.path.basename(path) == f"python{version}"
