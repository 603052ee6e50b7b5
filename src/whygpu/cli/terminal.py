"""What the terminal can show."""

from __future__ import annotations

import os
import shutil
import sys

NARROWEST = 40
WIDEST = 100


def width() -> int:
    """Columns to use: the terminal's, within reason; 80 where there is no terminal."""
    columns = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80
    return max(NARROWEST, min(columns, WIDEST))


def use_color(choice: str) -> bool:
    """--color decides; else colour is for terminals, unless NO_COLOR or a dumb one forbids it."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
