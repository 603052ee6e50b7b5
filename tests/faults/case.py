"""One hostile input: the words, the files and the environment that whygpu is started with."""

from __future__ import annotations

import os
import pathlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple


class Link(NamedTuple):
    """A symbolic link."""

    target: str


class Fifo(NamedTuple):
    """A named pipe that nobody writes to."""


class Script(NamedTuple):
    """A file that can be executed."""

    content: bytes


Entry = bytes | Link | Fifo | Script


class Case(NamedTuple):
    argv: tuple[str, ...]
    """The words after `whygpu`. They are run in the folder that has the files."""
    files: Mapping[str, Entry] = {}
    environ: Mapping[str, str] = {}
    stdin: bytes = b""
    secrets: tuple[str, ...] = ()
    """What no output may contain."""
    codes: frozenset[int] = frozenset((0, 1, 2, 4))
    """The exit codes that keep the contract."""
    writes: frozenset[str] = frozenset()
    """Files that this command may create or replace."""


class Attack(NamedTuple):
    kind: str
    says: str
    """What the inputs are, for the table."""
    cases: Callable[[random.Random], Iterator[Case]]
    """An endless supply."""
    share: int
    """How many of every hundred inputs are of this kind."""


def lay_out(files: Mapping[str, Entry], folder: pathlib.Path) -> None:
    for name, entry in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, Link):
            path.symlink_to(entry.target)
        elif isinstance(entry, Fifo):
            os.mkfifo(path)
        elif isinstance(entry, Script):
            path.write_bytes(entry.content)
            path.chmod(0o755)
        else:
            path.write_bytes(entry)
