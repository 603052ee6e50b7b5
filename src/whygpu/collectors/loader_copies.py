"""Copies of a library on the machine that the loader does not use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from whygpu.collectors.loader_search import Search, Searcher
from whygpu.host.base import Host
from whygpu.model.libraries import OtherCopy
from whygpu.model.observed import Known


def other_copies(
    host: Host, searcher: Searcher, search: Search, used: str | None, folders: Sequence[str]
) -> tuple[OtherCopy, ...]:
    """Every copy in the given folders except the one in use, each with the reason."""
    if "/" in search.name:
        return ()
    seen = {_identity(host, used)} if used else set()
    copies: list[OtherCopy] = []
    for path in _copies(searcher, search.name, folders):
        identity = _identity(host, path)
        if identity is None or identity not in seen:
            seen.add(identity)
            copies.append(_other_copy(host, searcher, search, path))
    return tuple(copies)


def _copies(searcher: Searcher, name: str, folders: Sequence[str]) -> Iterator[str]:
    """Files of that name, or of that name with more version numbers appended."""
    for folder in folders:
        names = searcher.names_in(folder) or frozenset()
        longer = sorted(entry for entry in names if entry.startswith(f"{name}."))
        yield from (os.path.join(folder, entry) for entry in ([name] if name in names else longer))


def _identity(host: Host, path: str) -> str | None:
    facts = host.stat(path)
    return facts.value.identity if isinstance(facts, Known) else None


def _other_copy(host: Host, searcher: Searcher, search: Search, path: str) -> OtherCopy:
    file = searcher.file(path)
    if file.result == "not-there":
        return OtherCopy(path, "it is a link to a file that does not exist", usable=False)
    if file.result == "broken":
        return OtherCopy(path, file.message, usable=False)
    if file.result == "other-architecture":
        return OtherCopy(path, f"it is for {file.machine}", usable=False)
    return OtherCopy(path, _reason(host, searcher, search, path))


def _reason(host: Host, searcher: Searcher, search: Search, path: str) -> str:
    """Why an intact copy is not the one in use."""
    if os.path.basename(path) != search.name:
        return f"it has no link named {search.name}, the requested name"
    if search.searched and search.searched[0].kind == "loaded":
        return f"{search.path} was loaded before"
    if not _is_reachable(host, searcher, search, path):
        return "its folder is not on a search path"
    if search.path is None:
        return "the search ended before it reached its folder"
    return f"its folder comes after {os.path.dirname(search.path)} on the search path"


def _is_reachable(host: Host, searcher: Searcher, search: Search, path: str) -> bool:
    """Whether the loader would reach the file if it found no other before."""
    if search.requester is None:
        return False
    wanted = _identity(host, path)
    return any(
        candidate == path or _identity(host, candidate) == wanted
        for candidate in searcher.candidates(search.name, search.requester)
    )
