"""What a requirements, project or lock file asks for, and whether that can use a GPU."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.install_plan import TableEdition
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

FileFormat = Literal[
    "requirements.txt",
    "pyproject.toml",
    "environment.yml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pixi.lock",
    "conda-lock.yml",
]
LOCK_FORMATS: tuple[FileFormat, ...] = (
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pixi.lock",
    "conda-lock.yml",
)
"""Files that a tool writes: the change belongs into the file that it reads."""
SourceRole = Literal["index", "extra", "find-links", "explicit"]
"""`index` replaces the default index, `extra` and `find-links` add to it, and a requirement with an
`explicit` source is taken from nowhere else."""


class FileLine(NamedTuple):
    """A line of a file, to show and to replace."""

    file: str
    line: int
    """From 1."""
    text: str
    """The line as it is in the file, without spaces at its ends."""


class PackageSource(NamedTuple):
    """A package index, or a page with links to packages."""

    url: str
    role: SourceRole
    place: FileLine


class PinnedRequirement(NamedTuple):
    """One requirement, with its place and the sources that it is taken from."""

    name: str
    """Normalised: lower case, single dashes."""
    extras: tuple[str, ...]
    specifier: str
    """As pip writes it, also for conda and poetry; empty if any release is accepted."""
    marker: str
    """The condition under which it applies, as pip writes it; empty if it always applies."""
    place: FileLine
    manager: Literal["pip", "conda"] = "pip"
    sources: tuple[PackageSource, ...] = ()
    """Empty for the default index."""
    url: str = ""
    """The file or repository that is installed, if the requirement names one."""
    build: str = ""
    """The build string of conda: cuda120_py311h25a69b7_200, or a pattern such as *cpu*."""
    channel: str = ""
    group: str = ""
    """The optional part of the project that it belongs to, as in "extra gpu"; mostly empty."""
    ignored: PackageSource | None = None
    """An index in the line of the requirement itself, where pip ignores it."""
    required_by: str = ""
    """The package of the file that brings it; empty if the file names it."""

    @property
    def is_optional(self) -> bool:
        return bool(self.group)


class UnreadLine(NamedTuple):
    """A line that was not understood."""

    place: FileLine
    reason: str


class RequirementsFile(NamedTuple):
    """What a file, with the files that it includes, asks for."""

    path: str
    format: FileFormat
    requirements: tuple[PinnedRequirement, ...]
    constraints: tuple[PinnedRequirement, ...] = ()
    """They limit a requirement and install nothing."""
    requires_python: str = ""
    """The Python versions that the file allows, as pip writes them; empty if it does not say."""
    unread: tuple[UnreadLine, ...] = ()


Ability = Literal["can", "cannot", "unknown"]
ProblemKind = Literal[
    "cpu-build",
    "other-gpus",
    "cuda-not-included",
    "defect",
    "no-release-fits",
    "driver-too-old",
    "gpu-too-old",
    "gpu-too-new",
    "removed",
    "wrong-name",
    "two-owners",
    "mixed-cuda",
    "conflict",
]
"""Why a requirement cannot use the GPU."""


class LineEdit(NamedTuple):
    """A line to replace."""

    place: FileLine
    replacement: str
    """What to write in its place; empty to remove the line."""


class RequirementVerdict(NamedTuple):
    """Whether what one requirement installs can use the GPU."""

    requirement: PinnedRequirement
    ability: Ability
    reason: str
    """The rest of a sentence that begins with the name of the requirement."""
    kind: ProblemKind | None = None
    """None if it can, or if that is unknown."""
    edits: tuple[LineEdit, ...] = ()
    """The smallest change that makes it use the GPU; empty if none is known."""
    advice: str = ""
    """What else to do, as a sentence; empty if the edits are enough."""
    version: str = ""
    """The release that is installed; empty if it is not known."""
    is_alternative: bool = False
    """It is optional, and another requirement of the file gives the framework GPU support."""


@shows_itself
class FileAnswer(NamedTuple):
    """What of a file cannot use the GPU of a machine, and why."""

    machine: MachineSpec
    table: TableEdition | None
    file: RequirementsFile
    verdicts: tuple[RequirementVerdict, ...]
    """One for each requirement that takes part in GPU use, in the order of the file."""
    unchecked: tuple[str, ...]
    """What could not be checked about the file as a whole, as sentences."""

    def having(self, ability: Ability) -> tuple[RequirementVerdict, ...]:
        return tuple(
            verdict
            for verdict in self.verdicts
            if verdict.ability == ability and not verdict.is_alternative
        )

    @property
    def standing(self) -> Standing:
        if self.having("cannot"):
            return "wrong"
        if self.having("unknown") or self.unchecked or self.file.unread:
            return "unknown"
        return "fine" if self.verdicts else "answered"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
