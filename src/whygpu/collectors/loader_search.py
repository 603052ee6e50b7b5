"""Where the dynamic loader searches for one library name, in order, and what it finds there."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from whygpu.collectors.loader_settings import CACHE_FILE, LoaderSettings, cached_paths
from whygpu.host.base import Host
from whygpu.host.elf import UNIVERSAL_REFUSALS, Identity, identity
from whygpu.model.libraries import ElfFacts, SearchedFolder, SearchKind
from whygpu.model.observed import Absent, Known

NOT_THERE = os.strerror(errno.ENOENT)
_SYSTEM_ERRORS = frozenset(os.strerror(number) for number in errno.errorcode)
_IS_FOLDER = os.strerror(errno.EISDIR)
_DENIED = os.strerror(errno.EACCES)
_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")


class Loaded:
    """A file in the simulated process."""

    def __init__(
        self,
        path: str,
        origin: str,
        facts: ElfFacts,
        names: set[str],
        identity: str,
        loader: Loaded | None,
        search: Search,
        opened: bool = False,
    ) -> None:
        self.path = path
        """As the loader writes it, without normalisation; empty for the program."""
        self.origin = origin
        """What $ORIGIN stands for in it."""
        self.facts = facts
        self.names = names
        """The names by which the loader knows it."""
        self.identity = identity
        self.loader = loader
        """The file that needs it; None for the program and for files opened at run time."""
        self.search = search
        self.opened = opened
        """An open() of it succeeded, so that all libraries that it needs are loaded."""
        self.needs: list[Loaded] = []


class FolderList(NamedTuple):
    """One of the loader's search paths, and the setting that it comes from."""

    kind: SearchKind
    owner: str
    folders: tuple[str, ...]


class Search(NamedTuple):
    """The result of the search for one name."""

    name: str
    requester: Loaded | None
    searched: tuple[SearchedFolder, ...]
    path: str | None
    facts: ElfFacts | None
    broken: bool
    message: str
    """Why there is no usable file, in the loader's words; empty if there is one."""


class _File(NamedTuple):
    result: Literal["found", "not-there", "other-architecture", "broken"]
    facts: ElfFacts | None = None
    message: str = ""
    other_class: bool = False
    machine: str = ""
    """The processor that it is for, if it is not the one of this process."""


class Searcher:
    """Searches for names on behalf of loaded files. Caches what it has read from the disk."""

    def __init__(
        self, host: Host, settings: LoaderSettings, own: Identity, program: Loaded
    ) -> None:
        self._host = host
        self._settings = settings
        self._own = own
        self._program = program
        self._expanded: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        library_path = host.environ.get("LD_LIBRARY_PATH", "")
        written = tuple(re.split("[:;]", library_path)) if library_path else ()
        self._library_path = self._folders(program, written)
        self._files: dict[str, _File] = {}
        self._cached: Mapping[str, str] | None = None
        self._listings: dict[str, frozenset[str] | None] = {}

    def search(self, name: str, requester: Loaded) -> Search:
        """Find the file that the loader would open for a name that is not loaded yet."""
        if "/" in name:
            return self._absolute(name, requester)
        searched: list[SearchedFolder] = []
        error = ""
        other_class = False
        for folders in self.lists(requester):
            for path, shown in self._candidates(folders, name, requester):
                file = self.file(path) if path else _File("not-there", message=NOT_THERE)
                searched.append(SearchedFolder(shown, folders.kind, folders.owner, file.result))
                other_class |= file.other_class
                if file.result == "found":
                    return Search(name, requester, tuple(searched), path, file.facts, False, "")
                if file.result == "broken" and file.message not in _SYSTEM_ERRORS:
                    message = f"{path}: {file.message}"
                    return Search(name, requester, tuple(searched), path, None, True, message)
                if folders.kind == "cache" and not path:
                    # No file was tried, so there is no new error to report.
                    continue
                error = file.message
                if error not in (NOT_THERE, _DENIED):
                    # The loader abandons this list and continues with the next.
                    break
        message = self._not_found(name, error, other_class)
        return Search(name, requester, tuple(searched), None, None, False, message)

    def lists(self, requester: Loaded) -> Iterator[FolderList]:
        """Every list that the loader would search for this requester, in order."""
        if not requester.facts.runpath:
            seen_program = False
            asking: Loaded | None = requester
            while asking is not None:
                yield from self._own_list(asking, "rpath")
                seen_program |= asking is self._program
                asking = asking.loader
            if not seen_program:
                yield from self._own_list(self._program, "rpath")
        if self._library_path:
            yield FolderList("ld-library-path", "", self._library_path)
        yield from self._own_list(requester, "runpath")
        yield FolderList("cache", "", (CACHE_FILE,))
        if not requester.facts.no_default_folders:
            yield FolderList("default", "", self._settings.default_folders)

    def candidates(self, name: str, requester: Loaded) -> Iterator[str]:
        """Every path that the loader would try if it never found a usable file."""
        for folders in self.lists(requester):
            yield from (path for path, _ in self._candidates(folders, name, requester) if path)

    def file(self, path: str) -> _File:
        """The result of opening a path in a process of this architecture."""
        if path not in self._files:
            self._files[path] = self._open(path)
        return self._files[path]

    def names_in(self, folder: str) -> frozenset[str] | None:
        """The names in a folder; None if it cannot be listed and may contain anything."""
        if folder not in self._listings:
            answer = self._host.list(folder or ".")
            if isinstance(answer, Known):
                self._listings[folder] = frozenset(answer.value)
            else:
                self._listings[folder] = frozenset() if isinstance(answer, Absent) else None
        return self._listings[folder]

    def expand(self, text: str, owner: Loaded) -> str:
        """Replace $ORIGIN, $LIB and $PLATFORM by their values."""
        values = {
            "ORIGIN": owner.origin,
            "LIB": self._settings.lib_token,
            "PLATFORM": self._settings.platform_token,
        }
        return _TOKEN.sub(lambda match: values[match.group(1) or match.group(2)], text)

    def _absolute(self, name: str, requester: Loaded) -> Search:
        path = self.expand(name, requester)
        file = self.file(path)
        folder = SearchedFolder(os.path.dirname(path), "absolute", "", file.result)
        if file.result == "found":
            return Search(name, requester, (folder,), path, file.facts, False, "")
        if file.result == "broken" and file.message not in _SYSTEM_ERRORS:
            message = f"{path}: {file.message}"
            return Search(name, requester, (folder,), path, None, True, message)
        message = self._not_found(name, file.message, file.other_class)
        return Search(name, requester, (folder,), None, None, False, message)

    def _not_found(self, name: str, error: str, other_class: bool) -> str:
        if other_class:
            return f"{name}: wrong ELF class: ELFCLASS{96 - self._own.bits}"
        return f"{name}: cannot open shared object file" + (f": {error}" if error else "")

    def _own_list(self, owner: Loaded, kind: Literal["rpath", "runpath"]) -> Iterator[FolderList]:
        # The loader ignores the RPATH of a file that has a RUNPATH, for every requester.
        written = owner.facts.runpath if kind == "runpath" else owner.facts.rpath
        if written and (kind == "runpath" or not owner.facts.runpath):
            yield FolderList(kind, owner.path, self._folders(owner, written))

    def _folders(self, owner: Loaded, written: tuple[str, ...]) -> tuple[str, ...]:
        """Folders as the loader keeps them: tokens replaced, each once; empty means the current
        folder."""
        known = self._expanded.get((owner.origin, written))
        if known is None:
            # TensorFlow's list has hundreds of entries; about a dozen of them differ.
            texts = (self.expand(text, owner) for text in dict.fromkeys(written))
            known = tuple(
                dict.fromkeys(text.rstrip("/") or ("/" if text else "") for text in texts)
            )
            self._expanded[owner.origin, written] = known
        return known

    def _candidates(
        self, folders: FolderList, name: str, requester: Loaded
    ) -> Iterator[tuple[str, str]]:
        """Paths to try, each with the folder to show; the path is empty if it cannot exist."""
        if folders.kind == "cache":
            path = self._from_cache(name, requester)
            yield path, CACHE_FILE
            return
        for folder in folders.folders:
            for tried in self._with_subfolders(folder):
                path = f"{tried.rstrip('/')}/{name}" if tried else name
                shown = os.path.normpath(tried) if tried else "."
                if self._may_hold(tried, name):
                    yield path, shown
                elif tried == folder:
                    yield "", shown

    def _from_cache(self, name: str, requester: Loaded) -> str:
        if self._cached is None:
            capabilities = self._settings.capabilities
            self._cached = cached_paths(self._host, self._own, capabilities)
        path = self._cached.get(name, "")
        if requester.facts.no_default_folders and path.startswith(
            tuple(f"{folder}/" for folder in self._settings.default_folders)
        ):
            return ""
        return path

    def _with_subfolders(self, folder: str) -> Iterator[str]:
        for subfolder in self._settings.subfolders:
            if self._may_hold(folder, subfolder.partition("/")[0]):
                yield f"{folder.rstrip('/')}/{subfolder}" if folder else subfolder
        yield folder

    def _may_hold(self, folder: str, name: str) -> bool:
        names = self.names_in(folder)
        return names is None or name in names

    def _open(self, path: str) -> _File:
        answer = self._host.elf(path)
        if isinstance(answer, Known):
            return self._judged(answer.value, Identity(answer.value.machine, answer.value.bits))
        if isinstance(answer, Absent):
            return _File("not-there", message=NOT_THERE)
        reason = answer.reason.removeprefix(f"{path}: ")
        if reason.capitalize() == _DENIED:
            return _File("broken", message=_DENIED)
        if reason == _IS_FOLDER:
            return _File("broken", message=f"cannot read file data: {reason}")
        if reason in _SYSTEM_ERRORS:
            return _File("broken", message=reason)
        return self._foreign(path, reason) or _File("broken", message=reason)

    def _foreign(self, path: str, reason: str) -> _File | None:
        """The loader skips files for other machines before it checks anything else."""
        header = self._host.read_bytes(path, 64, whole=False)
        found = identity(header.value) if isinstance(header, Known) else None
        if found is None or found == self._own:
            return None
        if found.bits == self._own.bits and reason in UNIVERSAL_REFUSALS:
            return None
        return self._judged(None, found)

    def _judged(self, facts: ElfFacts | None, found: Identity) -> _File:
        if found == self._own:
            return _File("found", facts)
        other_class = found.bits != self._own.bits
        return _File("other-architecture", facts, NOT_THERE, other_class, _words(found))


def _words(found: Identity) -> str:
    return f"{found.machine}, {found.bits} bits"
