"""Checks that the symbols and symbol versions which newly loaded files require are defined."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.collectors.loader_search import Loaded
from whygpu.host.base import Host
from whygpu.model.observed import Known, Unknown

_CUDA_NAME = re.compile(r"lib(cu|nv|nccl)", re.I)
"""Only these libraries are checked symbol by symbol. Framework libraries have hundreds of thousands
of symbols."""


class Unmet(NamedTuple):
    """A requirement that no loaded file satisfies."""

    by: Loaded
    provider: Loaded | None
    """The loaded file that should satisfy it, if the requirement names one."""
    message: str


def unmet_version(batch: Sequence[Loaded], loaded: Sequence[Loaded]) -> Unmet | None:
    """The first version that a file of the batch requires and its provider does not define."""
    for file in batch:
        for need in file.facts.version_needs:
            provider = next((other for other in loaded if need.library in other.names), None)
            if provider is None or not provider.facts.versions_defined:
                # The loader accepts a library without versions.
                continue
            for version in need.versions:
                if version not in provider.facts.versions_defined:
                    message = (
                        f"{provider.path}: version `{version}' not found (required by {file.path})"
                    )
                    return Unmet(file, provider, message)
    return None


class SymbolChecker:
    """Looks up required symbols as the loader does when it binds everything at once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tables: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
        self._unread: set[str] = set()
        """Files whose symbols could not be read. They may define any symbol."""

    def unmet_symbol(
        self, new: Sequence[Loaded], tree: Sequence[Loaded], scope: Sequence[Loaded]
    ) -> Unmet | None:
        """The first symbol that a new CUDA library requires and no file in scope defines."""
        checked = [file for file in new if _is_cuda(file)]
        if not checked:
            return None
        defined = frozenset().union(*(self._table(file)[0] for file in scope if _is_cuda(file)))
        others = [file for file in scope if not _is_cuda(file)]
        # System libraries never remove symbols, so the version check covers their symbols.
        versions = frozenset().union(*(file.facts.versions_defined for file in others))
        for file in _binding_order(tree):
            for symbol in self._table(file)[1] if file in checked else ():
                name, _, version = symbol.partition("@")
                if version and (version in versions or _is_among(name, version, defined)):
                    continue
                if not version and _is_among_unversioned(name, defined):
                    continue
                if not self._is_defined_elsewhere(name, version, others):
                    unread = any(_place(each) in self._unread for each in scope)
                    return None if unread else _unmet(file, symbol, scope)
        return None

    def _is_defined_elsewhere(self, name: str, version: str, files: Sequence[Loaded]) -> bool:
        """Whether one of the libraries that are searched last defines the symbol."""
        if version:
            return any(
                name in self._table(file)[0] for file in files if not file.facts.versions_defined
            )
        return any(_is_among_unversioned(name, self._table(file)[0]) for file in files)

    def _table(self, file: Loaded) -> tuple[frozenset[str], tuple[str, ...]]:
        path = _place(file)
        if path not in self._tables:
            answer = self._host.symbols(path)
            if isinstance(answer, Unknown):
                self._unread.add(path)
            defined, required = answer.value if isinstance(answer, Known) else ((), ())
            self._tables[path] = (frozenset(defined), required)
        return self._tables[path]


def _place(file: Loaded) -> str:
    return file.path or file.search.name


def _is_among(name: str, version: str, defined: frozenset[str]) -> bool:
    return f"{name}@@{version}" in defined or f"{name}@{version}" in defined or name in defined


def _is_among_unversioned(name: str, defined: frozenset[str]) -> bool:
    """Any default version satisfies a reference without a version."""
    return name in defined or any(entry.startswith(f"{name}@@") for entry in defined)


def _unmet(file: Loaded, symbol: str, scope: Sequence[Loaded]) -> Unmet:
    name, _, version = symbol.partition("@")
    suffix = f", version {version}" if version else ""
    provider = next(
        (other for other in scope if version and version in other.facts.versions_defined), None
    )
    return Unmet(file, provider, f"{file.path}: undefined symbol: {name}{suffix}")


def _is_cuda(file: Loaded) -> bool:
    return _CUDA_NAME.match(os.path.basename(file.path)) is not None


def _binding_order(tree: Sequence[Loaded]) -> Iterator[Loaded]:
    """Dependencies before their dependents, from the end of the list, as the loader sorts them."""
    visited: set[int] = set()

    def visit(file: Loaded) -> Iterator[Loaded]:
        if id(file) in visited:
            return
        visited.add(id(file))
        for need in file.needs:
            yield from visit(need)
        yield file

    for file in reversed(tree):
        # The opened file comes last, even if its dependencies lead back to it.
        yield from (each for each in visit(file) if each is not tree[0])
    yield from tree[:1]
