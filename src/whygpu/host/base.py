"""The interface through which collectors query a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from whygpu.host import limits
from whygpu.model.libraries import ElfFacts
from whygpu.model.observed import Observed

FileKind = Literal["file", "folder", "character-device", "other"]


class FileFacts(NamedTuple):
    kind: FileKind
    mode: str
    """Permissions as ls prints them."""
    size: int
    group: str
    """The owning group's name, or its number if it has none."""
    usable: bool
    """This process may read and write it."""
    real_path: str
    """With every symbolic link followed."""
    identity: str
    """The same for two names of one file: device and inode."""


class Completed(NamedTuple):
    """How a short command ended. `code` is negative for a signal, as in subprocess."""

    code: int
    stdout: str
    stderr: str
    timed_out: bool


class Platform(NamedTuple):
    """What the interpreter knows about the system."""

    system: str
    """As platform.system(): Linux, Darwin, Windows."""
    kernel: str
    machine: str
    cores: int
    python: str
    """The interpreter that whygpu itself runs on."""
    libc: str
    """Name and version, such as "glibc 2.36"; empty if the system does not say."""
    home: str
    user: str
    host_name: str


class Host(Protocol):
    """A machine, local or replayed. Every answer is Known, Absent, or Unknown with its reason."""

    @property
    def platform(self) -> Platform: ...

    @property
    def environ(self) -> Mapping[str, str]: ...

    def read(
        self, path: str, limit: int = limits.TEXT_FILE, *, whole: bool = True
    ) -> Observed[str]:
        """The text of a file; bytes that are not UTF-8 are replaced.

        A file of more than `limit` bytes is Unknown, unless its start is enough (not `whole`).
        """

    def read_bytes(
        self, path: str, limit: int = limits.BINARY_FILE, *, whole: bool = True
    ) -> Observed[bytes]: ...

    def list(self, path: str) -> Observed[tuple[str, ...]]:
        """The names in a folder, sorted."""

    def stat(self, path: str) -> Observed[FileFacts]:
        """Facts about the file at the path, with links followed."""

    def disk(self, path: str) -> Observed[int]:
        """Size in bytes of the file system that contains the path."""

    def elf(self, path: str) -> Observed[ElfFacts]:
        """The dynamic section; Unknown, with the loader's message, if the ELF file is invalid."""

    def symbols(self, path: str) -> Observed[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Names of the dynamic symbols that an ELF file defines, and of those that it requires."""

    def gpu_code(self, path: str) -> Observed[tuple[str, ...]]:
        """Architectures of the GPU code in an ELF file: sm_80, compute_90, gfx90a; sorted."""

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        """Run a short command. Absent if there is no such command; Unknown if it exceeds the limits
        on output or memory.

        A command that makes no progress until its time limit has `timed_out`. One that is still
        working then is Unknown: it may be slow, or the machine too busy to let it run.
        """
