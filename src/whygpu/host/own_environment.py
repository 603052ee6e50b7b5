"""The environment that whygpu itself is installed in, if somebody works in it."""

from __future__ import annotations

import os.path
import sys
from itertools import pairwise

FRAMEWORKS = ("tensorflow", "torch", "jax", "keras")
_MARKS = ("pyvenv.cfg", "conda-meta")


_OF_TOOLS = (("uv", "archive-v0"), ("uv", "environments-v2"), ("uv", "tools"), ("pipx", "venvs"))
"""Folders, one in the other, below which uvx, uv tool and pipx put an environment for one tool."""


def made_for_whygpu() -> str | None:
    """The folder with the programs of whygpu's environment, if uvx or pipx made it for whygpu.

    uvx puts it first on PATH. Ask own_python() first: somebody may have added a framework.
    """
    parts = os.path.normpath(sys.prefix).split(os.sep)
    pairs = set(pairwise(parts))
    return os.path.dirname(sys.executable) if pairs.intersection(_OF_TOOLS) else None


def own_python() -> str | None:
    """The Python that runs whygpu, if its environment has a framework.

    `/some/venv/bin/whygpu` and `/some/venv/bin/python -m whygpu` are about that environment, active
    or not. The environment of pipx or uvx contains only whygpu, so it is not the one to examine.
    """
    if not any(os.path.exists(os.path.join(sys.prefix, mark)) for mark in _MARKS):
        return None
    sites = [path for path in sys.path if path.startswith(os.path.join(sys.prefix, ""))]
    has_framework = any(
        os.path.isdir(os.path.join(site, name)) for site in sites for name in FRAMEWORKS
    )
    return sys.executable if has_framework else None
