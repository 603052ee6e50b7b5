"""Walks folders of snapshots and logs. A folder that cannot be read does not end the walk."""

from __future__ import annotations

import os
from collections.abc import Iterator

from whygpu.model.fleet import UnreadFolder


def files_below(path: str, closed: list[UnreadFolder]) -> Iterator[str]:
    """The files in a folder and below it, in the order of their names.

    Folders that cannot be read, such as the lost+found of a disk, are added to `closed`.
    """

    def note(error: OSError) -> None:
        closed.append(UnreadFolder(error.filename or path, error.strerror or str(error)))

    for folder, below, files in os.walk(path, onerror=note):
        below.sort()
        for file in sorted(files):
            yield os.path.join(folder, file)


def also_closed(closed: list[UnreadFolder]) -> str:
    """For an error about nothing that was found: the folders in which it may be."""
    return "".join(
        f"; the folder {item.folder} cannot be read: {item.reason}" for item in closed[:3]
    )
