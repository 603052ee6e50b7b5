"""What a node is asked for, and what comes back, whichever engine runs it there."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from whygpu.host.writing import write_file
from whygpu.model.fleet import NodeLoss
from whygpu.readers import limits

NODE_LIMIT = 300.0
"""Seconds for one node, in which up to four frameworks start one after the other."""
_MOST_GPUS = 16
"""Of a node; they are put under load one after the other."""
_NO_FILE_NAME = re.compile(r"[^\w.:@+-]")
_LONGEST_NAME = 200

OnNode = Callable[[int, int], None]
"""The number of nodes that have answered or are lost, and of all nodes."""


def node_limit(stress: float | None) -> float:
    """Seconds until a node counts as hung, if the user gives no other limit."""
    return NODE_LIMIT + _MOST_GPUS * (stress or 0)


class NodeRequest(NamedTuple):
    """What every node does. It is the same on each of them."""

    python: str | None
    probe: bool
    probe_timeout: float
    limit: float
    """Seconds until a node counts as hung."""
    stress: float | None = None
    """Seconds for each GPU under load; None for no such test."""

    def words(self) -> tuple[str, ...]:
        """The words after `whygpu` that take the snapshot."""
        words = ["snapshot", "--timeout", f"{self.probe_timeout:g}"]
        if not self.probe:
            words.append("--no-probe")
        if self.stress is not None:
            words += ["--stress", f"{self.stress:g}"]
        if self.python is not None:
            words += ["--python", self.python]
        return tuple(words)


class Gathered(NamedTuple):
    files: dict[str, str]
    """The path of the snapshot of each node that answered."""
    lost: tuple[NodeLoss, ...]


def file_name(node: str) -> str:
    """A name for the file of a node. The name of a node may be hostile: it leads to no other
    folder, and to the file of no other node."""
    name = _NO_FILE_NAME.sub("_", node)[:_LONGEST_NAME].lstrip(".")
    if name != node or not name:
        from zlib import crc32

        name = f"{name or 'node'}-{crc32(node.encode('utf-8', 'replace')):08x}"
    return f"{name}.json"


def save(folder: str, node: str, content: bytes) -> str | NodeLoss:
    """Keep what a node sent; returns the path."""
    if len(content) > limits.SNAPSHOT:
        return NodeLoss(node, "unreadable", f"it sent {len(content):,} bytes: no snapshot has that")
    path = os.path.join(folder, file_name(node))
    try:
        write_file(path, content)
    except OSError as error:
        return NodeLoss(node, "unreadable", f"its snapshot could not be saved: {error.strerror}")
    return path


def distinct(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Names of nodes; those that several nodes have are followed by a part of their id."""
    times = Counter(names)
    return [
        name if times[name] == 1 else f"{name}-{each[:8]}"
        for name, each in zip(names, ids, strict=True)
    ]
