"""A way to start a command that file permissions hold for, even when the tests run as root."""

from __future__ import annotations

import os
import shutil

import pytest


def unprivileged() -> list[str]:
    """Words to put before a command: it may then read only what its user may read."""
    if os.getuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root reads every file, and setpriv, which takes that away, is not installed")
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search"]
