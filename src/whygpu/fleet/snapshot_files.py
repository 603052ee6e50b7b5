"""Finds snapshots in files and folders, and names the node that each is from."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.fleet.folders import also_closed, files_below
from whygpu.host.files import read_given
from whygpu.model.fleet import UnreadFolder

ENDING = ".json"
MOST_FILES = 200_000
"""As many as the largest clusters have nodes, several times over."""
_NODE_LIST = 1 << 24
"""Bytes of a list of expected nodes."""


class FoundSnapshots(NamedTuple):
    files: dict[str, str]
    """The path of each snapshot by the name of its node."""
    other_files: int
    """Files of the folders that have other names than snapshots."""
    unread_folders: tuple[UnreadFolder, ...]


def find_snapshots(given: Sequence[str]) -> FoundSnapshots:
    """The snapshots in files and folders. The name of a node is the file's name without its ending.

    Of a folder, all .json files in it and below it. If two files have the same name, the node is
    named by the whole path. A file that is named twice is one node.
    """
    names: dict[str, tuple[str, str]] = {}
    closed: list[UnreadFolder] = []
    others = 0
    for path in given:
        if not os.path.isdir(path):
            if not os.path.lexists(path):
                raise UsageError(f"there is no {path}; name folders of snapshots, or snapshots")
            names.setdefault(os.path.abspath(path), (_node(os.path.basename(path)), path))
            continue
        for file in files_below(path, closed):
            if not _is_snapshot(os.path.basename(file)):
                others += 1
                continue
            names.setdefault(os.path.abspath(file), (_node(os.path.relpath(file, path)), file))
            if len(names) > MOST_FILES:
                raise UsageError(
                    f"{path} has more than {MOST_FILES:,} snapshots; report on its folders one by "
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
    return name.lower().endswith(ENDING) and not name.startswith(".")


def _node(name: str) -> str:
    return name[: -len(ENDING)] if name.lower().endswith(ENDING) else name


def expected_nodes(path: str) -> tuple[str, ...]:
    """Names of nodes from a file with one on each line; comments begin with #."""
    try:
        content = read_given("/dev/stdin" if path == "-" else path, _NODE_LIST)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    # A Windows shell writes UTF-16.
    text = content.decode(json.detect_encoding(content), "replace")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    names = tuple(dict.fromkeys(line.removeprefix("node/") for line in lines if line))
    if not names:
        raise UsageError(f"{path} names no node; expected one name on each line")
    return names
