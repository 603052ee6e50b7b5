"""Finds snapshots in files and folders, and names the node that each is from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.fleet.folders import also_closed, files_below
from whygpu.fleet.node_lists import MOST_NODES
from whygpu.model.fleet import UnreadFolder
from whygpu.readers.unpacking import without_packing

ENDING = ".json"


class FoundSnapshots(NamedTuple):
    files: dict[str, str]
    """The path of each snapshot by the name of its node."""
    other_files: int
    """Files of the folders that have other names than snapshots."""
    unread_folders: tuple[UnreadFolder, ...]


def find_snapshots(given: Sequence[str]) -> FoundSnapshots:
    """The snapshots in files and folders. The name of a node is the file's name without its ending.

    Of a folder, all .json files in it and below it, also compressed. If two files have the same
    name, the node is named by the whole path. A file that is named twice is one node.
    """
    names: dict[str, tuple[str, str]] = {}
    closed: list[UnreadFolder] = []
    others = 0
    for path in given:
        if not os.path.isdir(path):
            if not os.path.lexists(path):
                raise UsageError(f"there is no {path}; name folders of snapshots, or snapshots")
            names.setdefault(os.path.abspath(path), (node_of(os.path.basename(path)), path))
            continue
        for file in files_below(path, closed):
            if not _is_snapshot(os.path.basename(file)):
                others += 1
                continue
            names.setdefault(os.path.abspath(file), (node_of(os.path.relpath(file, path)), file))
            if len(names) > MOST_NODES:
                raise UsageError(
                    f"{path} has more than {MOST_NODES:,} snapshots; report on its folders one by "
                    "one"
                )
    if not names:
        raise UsageError(
            f"no snapshot in {', '.join(given)}: expected files whose names end in {ENDING}, one "
            f"for each node; `whygpu snapshot -o NODE.json` writes one{also_closed(closed)}"
        )
    times = Counter(name for name, _ in names.values())
    files = {name if times[name] == 1 else path: path for name, path in names.values()}
    return FoundSnapshots(files, others, tuple(closed))


def _is_snapshot(name: str) -> bool:
    return node_of(name) != name and not name.startswith(".")


def node_of(name: str) -> str:
    """The name without .json, or .json.gz and the like; the whole name if it has no such ending."""
    plain = without_packing(name.lower())
    return name[: len(plain) - len(ENDING)] if plain.endswith(ENDING) else name
