"""Starts a command to which file permissions apply, even if the tests run as root."""

from __future__ import annotations

import os
import shutil

import pytest


def unprivileged() -> list[str]:
    """The prefix for a command that may then read only what its user may read."""
    if os.getuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip(
            "root reads every file, and setpriv, which removes that privilege, is not installed"
        )
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search"]
