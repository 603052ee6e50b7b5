"""Shared libraries: what a file declares, and how the dynamic loader would resolve a name."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed


class VersionNeed(NamedTuple):
    """Symbol versions that a file requires of one library (GLIBC_2.34 of libc.so.6)."""

    library: str
    versions: tuple[str, ...]


class ElfFacts(NamedTuple):
    """The parts of an ELF file's dynamic section that affect loading."""

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
    """The file whose rpath or runpath lists the folder; empty for other settings."""
    result: Literal["found", "not-there", "other-architecture", "broken"]


class OtherCopy(NamedTuple):
    """A copy of the library that exists and is not used."""

    path: str
    reason: str
    usable: bool = True
    """Whether it would load if it were found: it is complete and built for this processor."""


ResolutionOutcome = Literal[
    "loads", "not-found", "broken-file", "dependency-missing", "symbol-missing", "version-missing"
]


class Resolution(NamedTuple):
    """What the dynamic loader does when one file requests one library."""

    library: str
    requester: str
    """The path of the requesting file."""
    required: bool
    """Without it, the framework cannot use the GPU or be imported. If false, only a feature is
    lost."""
    outcome: ResolutionOutcome
    path: str | None
    """The file that is opened; None if none is found."""
    chain: tuple[str, ...]
    """From this library down to the one that fails, which is last; empty if none fails."""
    detail: str
    """The loader's error message; empty if loading succeeds."""
    searched: tuple[SearchedFolder, ...]
    """Where the loader searched for the last name of the chain or, without a failure, for the
    library."""
    other_copies: tuple[OtherCopy, ...]


CopyOrigin = Literal["wheel", "conda", "toolkit", "ld-library-path", "system"]


class LibraryCopy(NamedTuple):
    """One copy of a CUDA library on this machine."""

    name: str
    """The name without lib and .so: cudart, cudnn, cublas."""
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
