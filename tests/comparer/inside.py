"""Modules of what runs in the target, for tests of their arithmetic here."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import Any

from whygpu import work

INSIDE = pathlib.Path(work.__path__[0]) / "inside"


def part(name: str) -> Any:
    sys.path.append(str(INSIDE))
    try:
        return importlib.import_module(f"whygpu_work.{name}")
    finally:
        sys.path.remove(str(INSIDE))
