"""A folder that may not be read, also for root, who runs tests in containers."""

from __future__ import annotations

import errno
import os
import pathlib
from typing import Any

import pytest


def closed_to_the_walk(monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path) -> None:
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if os.fspath(path) == str(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
