"""Shared libraries: what a file says of itself, and what the loader would do with a name."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed


class VersionNeed(NamedTuple):
    """Symbol versions that a file requires of one library (GLIBC_2.34 of libc.so.6)."""

    library: str
    versions: tuple[str, ...]


class ElfFacts(NamedTuple):
    """The dynamic section of one ELF file, as far as loading depends on it."""

    machine: str
    bits: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    interpreter: str | None
    no_default_folders: bool
    version_needs: tuple[VersionNeed, ...]
    versions_defined: tuple[str, ...]


SearchKind = Literal[
    "loaded", "rpath", "ld-library-path", "runpath", "cache", "default", "absolute"
]


class SearchedFolder(NamedTuple):
    path: str
    kind: SearchKind
    owner: str
    """Whose setting put the folder on the list: a file for rpath and runpath, else empty."""
    result: Literal["found", "not-there", "other-architecture", "broken"]


class OtherCopy(NamedTuple):
    """A copy of the library that exists and is not used."""

    path: str
    reason: str
    usable: bool = True
    """It would load if it were found: it is whole, and for this processor."""


ResolutionOutcome = Literal[
    "loads", "not-found", "broken-file", "dependency-missing", "symbol-missing", "version-missing"
]


class Resolution(NamedTuple):
    """What the dynamic loader does when one file asks for one library."""

    library: str
    requester: str
    """The path of the file that asks."""
    required: bool
    """Without it the framework gives up the GPU (or does not import); else only a feature."""
    outcome: ResolutionOutcome
    path: str | None
    """The file that is opened; None when none is found."""
    chain: tuple[str, ...]
    """From this library down to the one that breaks, that one last; empty when all is well."""
    detail: str
    """The loader's reason, as it would word it; empty when all is well."""
    searched: tuple[SearchedFolder, ...]
    """Where the last name of the chain (or, when all is well, the library) was looked for."""
    other_copies: tuple[OtherCopy, ...]


CopyOrigin = Literal["wheel", "conda", "toolkit", "ld-library-path", "system"]


class LibraryCopy(NamedTuple):
    """One copy of a CUDA library on this machine."""

    name: str
    """Without lib and .so: cudart, cudnn, cublas."""
    soname: str
    path: str
    version: Observed[str]
    """From the file itself, never from a folder's name."""
    origin: CopyOrigin
    owner: str
    """The distribution that installed it ("nvidia-cudnn-cu12 9.27.0.42"); empty if unknown."""


class Toolkit(NamedTuple):
    """A CUDA toolkit on the machine."""

    path: str
    version: Observed[str]


class CudaFiles(NamedTuple):
    """CUDA as files: toolkits and library copies."""

    toolkits: tuple[Toolkit, ...]
    copies: tuple[LibraryCopy, ...]
