"""Finds snapshots in files and folders, and names the node that each is from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from whygpu.errors import UsageError
from whygpu.host.files import read_given

ENDING = ".json"
MOST_FILES = 200_000
"""As many as the largest clusters have nodes, several times over."""
_NODE_LIST = 1 << 24
"""Bytes of a list of expected nodes."""


def snapshot_files(given: Sequence[str]) -> dict[str, str]:
    """The path of each snapshot by the name of its node: the file's name without its ending.

    Of a folder, all .json files in it and below it. If two files have the same name, the node is
    named by the whole path.
    """
    found: list[tuple[str, str]] = []
    for path in given:
        for entry in _found(path):
            found.append(entry)
            if len(found) > MOST_FILES:
                raise UsageError(
                    f"{path} has more than {MOST_FILES:,} snapshots; report on its folders one by "
                    "one"
                )
    if not found:
        raise UsageError(
            f"no snapshot in {', '.join(given)}: expected files whose names end in {ENDING}, one "
            "for each node; `whygpu snapshot -o NODE.json` writes one"
        )
    times = Counter(name for name, _ in found)
    return {name if times[name] == 1 else path: path for name, path in found}


def _found(path: str) -> Iterator[tuple[str, str]]:
    if not os.path.isdir(path):
        if not os.path.lexists(path):
            raise UsageError(f"there is no {path}; name folders of snapshots, or snapshots")
        yield os.path.basename(path).removesuffix(ENDING), path
        return
    for folder, below, files in os.walk(path, onerror=_refuse):
        below.sort()
        for file in sorted(files):
            if file.endswith(ENDING) and not file.startswith("."):
                whole = os.path.join(folder, file)
                yield os.path.relpath(whole, path).removesuffix(ENDING), whole


def _refuse(error: OSError) -> None:
    raise UsageError(f"cannot read the folder {error.filename}: {error.strerror}") from error


def expected_nodes(path: str) -> tuple[str, ...]:
    """Names of nodes from a file with one on each line; comments begin with #."""
    try:
        content = read_given("/dev/stdin" if path == "-" else path, _NODE_LIST)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    lines = (
        line.partition("#")[0].strip() for line in content.decode("utf-8", "replace").splitlines()
    )
    names = tuple(dict.fromkeys(line.removeprefix("node/") for line in lines if line))
    if not names:
        raise UsageError(f"{path} names no node; expected one name on each line")
    return names
