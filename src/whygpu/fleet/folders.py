"""Walks folders of snapshots and logs. A folder that cannot be read does not end the walk."""

from __future__ import annotations

import os
from collections.abc import Iterator

from whygpu.model.fleet import UnreadFolder


def files_below(path: str, closed: list[UnreadFolder]) -> Iterator[str]:
    """The files in a folder and below it, in the order of their names.

    Folders that cannot be read, such as the lost+found of a disk, are added to `closed`, and so are
    links to folders elsewhere: a node that writes here could lead them anywhere. os.walk would do,
    but before Python 3.12 it fails if folders are nested a thousand deep.
    """
    root = os.path.realpath(path)
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        files: list[str] = []
        below: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not _is_folder(entry):
                        files.append(entry.path)
                    elif not entry.is_symlink():
                        below.append(entry.path)
                    elif not _is_inside(entry.path, root):
                        closed.append(UnreadFolder(entry.path, "links to folders are not followed"))
        except OSError as error:
            closed.append(UnreadFolder(folder, error.strerror or str(error)))
        yield from sorted(files)
        waiting += sorted(below, reverse=True)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_inside(link: str, root: str) -> bool:
    """What a link to a folder inside shows is read anyway."""
    return os.path.join(os.path.realpath(link), "").startswith(os.path.join(root, ""))


def also_closed(closed: list[UnreadFolder]) -> str:
    """For an error about nothing that was found: the folders in which it may be."""
    return "".join(
        f"; the folder {item.folder} cannot be read: {item.reason}" for item in closed[:3]
    )
