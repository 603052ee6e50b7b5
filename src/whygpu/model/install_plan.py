"""The answers of `whygpu plan`: which releases fit a machine, and how to install them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from whygpu.model.machine_spec import MachineSpec
from whygpu.model.release import Release
from whygpu.model.remedy import Action
from whygpu.model.shell import Shell
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, EXIT_FINE, Standing
from whygpu.model.target import Installer


class TableEdition(NamedTuple):
    """Which release table an answer comes from."""

    date: str
    """The day on which the package index was read, as in 2026-11-15."""
    origin: Literal["shipped", "updated"]
    """`shipped` with whygpu, or `updated` by `whygpu plan --update`."""
    unused: str = ""
    """Why an updated table was not used; empty if there is none, or an older one."""


class TableUpdate(NamedTuple):
    """What `whygpu plan --update` has changed."""

    edition: TableEdition
    before: TableEdition
    index_url: str
    """The package index that was read."""
    path: str
    """The file that was written."""
    new: tuple[str, ...]
    """Releases that the table did not have, as in torch 2.16.0."""
    gone: tuple[str, ...]
    """Releases that the index no longer has."""
    unread: tuple[str, ...]
    """Releases for which the index does not say what CUDA release and GPUs they are built for."""


class Wish(NamedTuple):
    """What the user asks for."""

    framework: str
    specifier: str
    """Empty if any release is acceptable."""

    def __str__(self) -> str:
        return f"{self.framework}{self.specifier}"


GpuInterface = Literal["cuda", "metal"]


class Candidate(NamedTuple):
    """A release that can satisfy a wish, with the requirements of its GPU build."""

    framework: str
    package: str
    version: str
    extra: str
    """The extra that installs the CUDA libraries; empty if there is none."""
    parts: tuple[Release, ...]
    """The wheels that must exist for the machine: the release's own, and those with GPU code."""
    cuda: str
    cudnn: str
    architectures: tuple[str, ...]
    unsearched: tuple[str, ...]
    no_build: str = ""
    """Why there is no GPU build to install; empty if there is one."""
    torch_index: str = ""
    """The index of PyTorch with this build, as in cu126; empty for the default package index."""
    uses: GpuInterface = "cuda"
    doubt: str = ""
    """Why it is only likely that this build exists; empty if it is certain."""
    unread: str = ""
    """Why it is not known what it was built for; empty if it is known."""
    remark: str = ""
    """What to know about the source of these facts, as the rest of a sentence; mostly empty."""

    @property
    def requirement(self) -> str:
        extra = f"[{self.extra}]" if self.extra else ""
        return f"{self.package}{extra}=={self.version}"

    @property
    def build(self) -> str:
        """The requirement, with what distinguishes this build from others of the release."""
        return f"{self.requirement}+{self.torch_index}" if self.torch_index else self.requirement

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirement, and that of the plug-in for Metal."""
        plugins = self.parts[1:] if self.uses == "metal" else ()
        return (self.requirement, *(f"{part.package}=={part.version}" for part in plugins))

    @property
    def has_gpu_code(self) -> bool:
        """Keras has no GPU code of its own."""
        return self.framework != "keras"


Constraint = Literal[
    "python",
    "platform",
    "glibc",
    "build",
    "driver",
    "architecture",
    "reports",
    "defect",
    "conflict",
]
FitOutcome = Literal["holds", "note", "unchecked", "breaks"]
"""`note`: it holds, but the user should know something. `unchecked`: a decisive fact is missing."""


class FitCheck(NamedTuple):
    """One release against one constraint."""

    constraint: Constraint
    outcome: FitOutcome
    reason: str
    """The rest of a sentence that starts with the release, as in "needs driver 525.60.13"."""


class ReleaseVerdict(NamedTuple):
    """The verdict on one release."""

    candidate: Candidate
    breaks: Constraint | None
    """The first constraint that it breaks; None if it fits."""
    reason: str
    unchecked: tuple[str, ...]
    notes: tuple[str, ...]
    likely_failure: str = ""
    """Why reports make it likely that it does not work, although nothing proves it."""

    @property
    def fits(self) -> bool:
        return self.breaks is None

    @property
    def has_only_a_defect(self) -> bool:
        """A defect comes with a remedy, so the release can be used."""
        return self.breaks == "defect"


class PlannedPackage(NamedTuple):
    name: str
    version: str


class Solution(NamedTuple):
    chosen: tuple[Candidate, ...]
    """One for each wish, in order."""
    packages: tuple[PlannedPackage, ...]
    """Every package of the release table that will be installed."""
    pins: tuple[tuple[str, str], ...]
    """Requirements to add to the command, each with its reason: the metadata of the packages would
    allow releases that do not work."""


class Plan(NamedTuple):
    solution: Solution
    verdicts: tuple[ReleaseVerdict, ...]
    """The checks of the chosen release, for each wish."""

    @property
    def chosen(self) -> tuple[Candidate, ...]:
        return self.solution.chosen

    @property
    def likely_failure(self) -> str:
        """Why reports make it likely that the plan does not work; mostly empty."""
        return next((v.likely_failure for v in self.verdicts if v.likely_failure), "")


class Advice(NamedTuple):
    """How to install a plan."""

    installer: Installer
    """The interpreter of the environment that the commands are for."""
    preparations: tuple[Action, ...]
    """Commands that must run first."""
    installs: tuple[Action, ...]
    """Alternatives, each of which installs the whole plan: with pip, and with uv."""
    remedies: tuple[Action, ...]
    """Commands that must run afterwards."""
    notes: tuple[str, ...]
    shell: Shell = "posix"
    """The shell that the commands are for."""


ChangeKind = Literal["release", "python", "driver", "glibc", "platform", "gpu"]


class Change(NamedTuple):
    """A change to the machine or the wishes that makes a plan possible."""

    kinds: tuple[ChangeKind, ...]
    what: str
    chosen: tuple[Candidate, ...]
    """What could be installed after that change."""
    doubt: str = ""
    """Why reports make it likely that even that does not work; mostly empty."""


@shows_itself
class PlanAnswer(NamedTuple):
    machine: MachineSpec
    wishes: tuple[Wish, ...]
    plan: Plan | None
    candidates: tuple[ReleaseVerdict, ...]
    """The verdicts for every wish, newest release first."""
    conflict: str
    """Why releases that fit the machine do not fit each other; empty if that is not the problem."""
    gave_up: str = ""
    """Why it is not known whether there is a plan; empty if it is known."""
    advice: Advice | None = None
    """How to install the plan; None if there is no plan."""
    changes: tuple[Change, ...] = ()
    """What would make a plan possible, if there is none or if it is likely not to work."""
    verified: str = ""
    """What pip, or uv, said about the plan; empty if neither was asked."""
    refuted: bool = False
    """pip, or uv, was asked and refused the plan."""
    table: TableEdition | None = None
    """None if the answer is for another part of whygpu, which does not show it."""

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What could not be checked about the plan, each once; or why there may be a plan."""
        if self.gave_up:
            return (self.gave_up,)
        verdicts = self.plan.verdicts if self.plan else ()
        return tuple(dict.fromkeys(text for verdict in verdicts for text in verdict.unchecked))

    @property
    def needs_remedy(self) -> bool:
        """Whether a part of the plan finds no GPU until the remedy in its commands is applied."""
        return self.plan is not None and any(v.has_only_a_defect for v in self.plan.verdicts)

    @property
    def standing(self) -> Standing:
        if self.gave_up:
            return "unknown"
        if self.plan is None or self.refuted:
            return "wrong"
        if self.unchecked:
            return "unknown"
        return "attention" if self.needs_remedy else "fine"

    @property
    def exit_code(self) -> int:
        """A plan that needs a remedy counts as a plan."""
        return EXIT_FINE if self.standing == "attention" else EXIT_CODES[self.standing]


@shows_itself
class ReleaseAnswer(NamedTuple):
    """One release against every constraint."""

    candidate: Candidate
    chain: tuple[FitCheck, ...]
    machine: MachineSpec
    table: TableEdition | None = None

    @property
    def broken(self) -> tuple[FitCheck, ...]:
        return tuple(check for check in self.chain if check.outcome == "breaks")

    @property
    def standing(self) -> Standing:
        if self.broken:
            return "wrong"
        unchecked = any(check.outcome == "unchecked" for check in self.chain)
        return "unknown" if unchecked else "fine"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]


class ReleaseNeeds(NamedTuple):
    """One release as a row of the matrix: whether it fits, and what it needs."""

    requirement: str
    breaks: Constraint | None
    python: str
    glibc: str
    cuda: str
    cudnn: str
    driver: str
    """The oldest driver that certainly runs it; empty if none is on record."""
    architectures: tuple[str, ...]


def no_wheel_for(machine: MachineSpec, pythons: Sequence[str]) -> str:
    """Why a release with wheels for these builds of Python, sorted, is none for the machine."""
    mine = machine.python_build
    if not pythons:
        return f"has no wheel for free-threaded builds of Python, you have {mine}"
    return f"has wheels for Python {version_range(pythons)}, you have {mine}"


def version_range(versions: Sequence[str]) -> str:
    """The range from the first to the last of sorted versions."""
    first, last = versions[0], versions[-1]
    return first if first == last else f"{first} to {last}"
