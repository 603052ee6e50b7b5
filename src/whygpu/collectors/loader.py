"""Simulates the GNU dynamic loader when a file in a process requests a library.

One LoaderProcess is one process of the target's interpreter. Opened libraries stay loaded and
satisfy later requests, so they must be opened in the order in which the framework opens them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from whygpu.collectors.cuda_files import LibraryFolder
from whygpu.collectors.loader_copies import other_copies
from whygpu.collectors.loader_search import Loaded, Search, Searcher
from whygpu.collectors.loader_settings import settings_of
from whygpu.collectors.loader_symbols import SymbolChecker, Unmet, unmet_version
from whygpu.host.base import Host
from whygpu.host.elf import Identity
from whygpu.model.libraries import (
    ElfFacts,
    OtherCopy,
    Resolution,
    ResolutionOutcome,
    SearchedFolder,
)
from whygpu.model.observed import Known, Undetermined, Unknown


class _Break(Exception):
    """Loading fails here."""

    def __init__(self, outcome: ResolutionOutcome, chain: tuple[str, ...], search: Search) -> None:
        super().__init__(search.message)
        self.outcome: ResolutionOutcome = outcome
        self.chain = chain
        self.search = search


class LoaderProcess:
    """A simulated process, which remembers the files that it has loaded.

    `folders` may contain copies of CUDA libraries; copies that are not used are reported. Raises
    Undetermined if the interpreter itself cannot be started or its file cannot be read.
    """

    def __init__(self, host: Host, executable: str, folders: Sequence[LibraryFolder] = ()) -> None:
        self._host = host
        self._folders = tuple(folder.path for folder in folders)
        facts = _known_facts(host, executable)
        if facts.interpreter is None:
            raise Undetermined(f"{executable} is not dynamically linked")
        if "musl" in os.path.basename(facts.interpreter):
            raise Undetermined(f"{executable} uses the loader of musl, which searches differently")
        own = Identity(facts.machine, facts.bits)
        program = _program(host, executable, facts)
        self._executable = executable
        self._loaded: list[Loaded] = [program]
        self._searcher = Searcher(
            host, settings_of(host, facts.interpreter, facts.machine), own, program
        )
        self._symbols = SymbolChecker(host)
        self._start(program, facts.interpreter)

    def open(self, library: str, *, requester: str, required: bool = True) -> Resolution:
        """dlopen(library) called by `requester`: the executable, or the path of another file.

        A requester that is not loaded yet is loaded first. If that fails, the request is simulated
        anyway, so that each library that it needs can be checked. Raises Undetermined if the
        requester is not an ELF file.
        """
        asking = self._requester(requester)
        before = len(self._loaded)
        try:
            root = self._load(library, asking)
        except _Break as failure:
            del self._loaded[before:]
            return self._failed(library, requester, required, failure)
        search = _as_found(library, root, is_new=root in self._loaded[before:])
        return Resolution(
            library=library,
            requester=requester,
            required=required,
            outcome="loads",
            path=self._tidy(root.path),
            chain=(),
            detail="",
            searched=search.searched,
            other_copies=self._other_copies(search),
        )

    def _start(self, program: Loaded, interpreter: str) -> None:
        """Load what the kernel and the loader load before the program runs."""
        facts = _known_facts(self._host, interpreter)
        names = {interpreter, facts.soname or interpreter}
        search = Search(interpreter, None, (), interpreter, facts, False, "")
        identity = self._identity(interpreter)
        origin = os.path.dirname(interpreter)
        itself = Loaded(interpreter, origin, facts, names, identity, program, search)
        self._loaded.append(itself)
        preloaded = [file for name in self._preloads() for file in self._preload(name, program)]
        try:
            tree = self._load_needs([program, *preloaded])
        except _Break as failure:
            raise Undetermined(f"{self._executable} does not start: {failure}") from failure
        self._global_scope = tree
        program.opened = True

    def _preloads(self) -> list[str]:
        listed = self._host.read("/etc/ld.so.preload")
        system_wide = listed.value if isinstance(listed, Known) else ""
        names = re.split("[ :]", self._host.environ.get("LD_PRELOAD", ""))
        return [name for name in (*names, *re.split(r"[\s:]", system_wide)) if name]

    def _preload(self, name: str, program: Loaded) -> list[Loaded]:
        try:
            return [self._map(name, program, program, (name,))]
        except _Break:
            # The loader reports this on stderr and continues.
            return []

    def _load(self, library: str, asking: Loaded) -> Loaded:
        before = len(self._loaded)
        root = self._map(library, asking, None, (library,))
        if root.opened:
            return root
        tree = self._load_needs([root])
        new = self._loaded[before:]
        unmet = unmet_version(tree, self._loaded)
        if unmet is not None:
            raise self._unmet("version-missing", library, tree, unmet)
        unmet = self._symbols.unmet_symbol(new, tree, [*self._global_scope, *tree])
        if unmet is not None:
            raise self._unmet("symbol-missing", library, tree, unmet)
        root.opened = True
        return root

    def _load_needs(self, files: list[Loaded]) -> list[Loaded]:
        """Map everything that the files need, level by level; returns the tree in that order."""
        tree = list(files)
        chains: dict[int, tuple[str, ...]] = {id(file): (file.search.name,) for file in files}
        for file in tree:
            needs: list[Loaded] = []
            for name in file.facts.needed:
                name = self._searcher.expand(name, file)
                chain = (*chains[id(file)], name)
                need = self._map(name, file, file, chain)
                needs.append(need)
                if id(need) not in chains:
                    chains[id(need)] = chain
                    tree.append(need)
            file.needs = needs
        return tree

    def _map(
        self, name: str, asking: Loaded, loader: Loaded | None, chain: tuple[str, ...]
    ) -> Loaded:
        """The loaded file for a name: one that is already loaded, or a new one."""
        known = next((file for file in self._loaded if _answers_to(file, name)), None)
        if known is not None:
            known.names.add(name)
            return known
        search = self._searcher.search(name, asking)
        if search.path is None or search.facts is None:
            outcome: ResolutionOutcome = "not-found" if len(chain) == 1 else "dependency-missing"
            raise _Break("broken-file" if search.broken else outcome, chain, search)
        identity = self._identity(search.path)
        for file in self._loaded:
            if file.identity == identity:
                file.names.add(name)
                return file
        file = Loaded(
            path=search.path,
            origin=os.path.dirname(search.path) or ".",
            facts=search.facts,
            names={name, search.path},
            identity=identity,
            loader=loader,
            search=search,
        )
        self._loaded.append(file)
        return file

    def _unmet(
        self, outcome: ResolutionOutcome, library: str, tree: Sequence[Loaded], unmet: Unmet
    ) -> _Break:
        chain = _chain(tree, unmet.by, library)
        culprit = unmet.by
        if unmet.provider is not None:
            culprit = unmet.provider
            chain = (*chain, os.path.basename(culprit.search.name))
        return _Break(outcome, chain, culprit.search._replace(message=unmet.message))

    def _failed(self, library: str, requester: str, required: bool, failure: _Break) -> Resolution:
        search = failure.search
        broke_itself = len(failure.chain) == 1
        path = search.path if broke_itself else self._path_of(library, requester)
        return Resolution(
            library=library,
            requester=requester,
            required=required,
            outcome=failure.outcome,
            path=self._tidy(path) if path else None,
            chain=failure.chain,
            detail=search.message,
            searched=search.searched,
            other_copies=self._other_copies(search),
        )

    def _path_of(self, library: str, requester: str) -> str | None:
        """The path of a library that was found but could not be loaded."""
        asking = self._requester(requester)
        known = next((file for file in self._loaded if _answers_to(file, library)), None)
        return known.path if known else self._searcher.search(library, asking).path

    def _other_copies(self, search: Search) -> tuple[OtherCopy, ...]:
        return other_copies(self._host, self._searcher, search, search.path, self._folders)

    def _requester(self, path: str) -> Loaded:
        if path == self._executable:
            return self._loaded[0]
        found = next((file for file in self._loaded if path in file.names), None)
        if found is None:
            identity = self._identity(path)
            found = next((file for file in self._loaded if file.identity == identity), None)
        return found if found is not None else self._load_requester(path)

    def _load_requester(self, path: str) -> Loaded:
        before = len(self._loaded)
        try:
            return self._load(path, self._loaded[0])
        except _Break:
            del self._loaded[before:]
        facts = _known_facts(self._host, path)
        search = Search(path, None, (), path, facts, False, "")
        origin = os.path.dirname(path) or "."
        return Loaded(path, origin, facts, {path}, self._identity(path), None, search)

    def _identity(self, path: str) -> str:
        answer = self._host.stat(path)
        return answer.value.identity if isinstance(answer, Known) else path

    def _tidy(self, path: str) -> str:
        """The path without "..", if that still names the same file in spite of links."""
        tidy = os.path.normpath(path)
        return tidy if tidy == path or self._identity(tidy) == self._identity(path) else path


def _known_facts(host: Host, path: str) -> ElfFacts:
    answer = host.elf(path)
    if isinstance(answer, Known):
        return answer.value
    reason = answer.reason if isinstance(answer, Unknown) else f"{path} does not exist"
    raise Undetermined(f"the loader's search cannot be followed: {reason}")


def _program(host: Host, executable: str, facts: ElfFacts) -> Loaded:
    answer = host.stat(executable)
    real = answer.value.real_path if isinstance(answer, Known) else executable
    identity = answer.value.identity if isinstance(answer, Known) else executable
    search = Search(executable, None, (), executable, facts, False, "")
    return Loaded("", os.path.dirname(real), facts, set(), identity, None, search)


def _answers_to(file: Loaded, name: str) -> bool:
    return name in file.names or (bool(name) and name == file.facts.soname)


def _as_found(library: str, file: Loaded, *, is_new: bool) -> Search:
    if is_new:
        return file.search
    folder = os.path.normpath(os.path.dirname(file.path) or ".")
    found = SearchedFolder(folder, "loaded", "", "found")
    return file.search._replace(name=library, searched=(found,))


def _chain(tree: Sequence[Loaded], target: Loaded, library: str) -> tuple[str, ...]:
    """The names that lead from the opened library down to a file it needs."""
    chains: dict[int, tuple[str, ...]] = {id(tree[0]): (library,)}
    for file in tree:
        for need in file.needs:
            chains.setdefault(id(need), (*chains[id(file)], os.path.basename(need.search.name)))
    return chains[id(target)]
