"""Writes the files of a small project."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping


def write_tree(folder: pathlib.Path, files: Mapping[str, str]) -> pathlib.Path:
    """Files by their names, which may have folders in them. Returns the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
