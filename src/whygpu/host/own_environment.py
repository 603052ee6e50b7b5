"""The environment that whygpu itself is installed in, if somebody works in it."""

from __future__ import annotations

import os.path
import sys

FRAMEWORKS = ("tensorflow", "torch", "jax", "keras")
_MARKS = ("pyvenv.cfg", "conda-meta")


def own_python() -> str | None:
    """The Python that runs whygpu, if its environment has a framework.

    `/some/venv/bin/whygpu` and `/some/venv/bin/python -m whygpu` are about that environment, active
    or not. The environment of pipx or uvx has whygpu alone, and nobody asks about it.
    """
    if not any(os.path.exists(os.path.join(sys.prefix, mark)) for mark in _MARKS):
        return None
    sites = [path for path in sys.path if path.startswith(os.path.join(sys.prefix, ""))]
    has_framework = any(
        os.path.isdir(os.path.join(site, name)) for site in sites for name in FRAMEWORKS
    )
    return sys.executable if has_framework else None
