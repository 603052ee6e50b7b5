"""Compares the nodes that a list names with those that have a snapshot.

A snapshot in a folder below is named with that folder. Names of hosts are the same in upper and
lower case. Schedulers name a node with its domain where `hostname` does not, or the other way
round. It is the same node if no other one has that host name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from whygpu.fleet.snapshot_files import node_of


class Compared(NamedTuple):
    missing: tuple[str, ...]
    """Expected, and without a file."""
    unexpected: tuple[str, ...]
    """With a file, and not expected."""


def compared(expected: Sequence[str], seen: Iterable[str]) -> Compared:
    listed = {node: node.lower() for node in expected}
    found = {node: _file_name(node) for node in seen}
    hosts = (_hosts_of(listed.values()), _hosts_of(found.values()))

    def is_among(others: dict[str, str]) -> Callable[[str, str], bool]:
        names = set(others.values())

        def check(node: str, name: str) -> bool:
            if node in others or name in names:
                return True
            host = _host(name)
            is_unique = all(each[host] == 1 for each in hosts)
            return is_unique and (host in names or name == host)

        return check

    was_found, was_listed = is_among(found), is_among(listed)
    return Compared(
        tuple(node for node, name in listed.items() if not was_found(node, name)),
        tuple(sorted(node for node, name in found.items() if not was_listed(node, name))),
    )


def _hosts_of(names: Iterable[str]) -> Counter[str]:
    return Counter(map(_host, set(names)))


def _file_name(node: str) -> str:
    """Without folders. A node is named by its whole path if two folders have a file of its name."""
    return node_of(os.path.basename(node).lower())


def _host(node: str) -> str:
    """The name without its domain; an address as it is."""
    host, _, domain = node.partition(".")
    return node if host.isdecimal() or not domain else host
