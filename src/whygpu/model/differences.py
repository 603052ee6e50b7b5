"""What differs between two snapshots, and which differences explain a change of verdict."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Finding
from whygpu.model.report import FrameworkVerdict, MachineVerdict
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

FactKind = Literal[
    "driver",
    "gpu",
    "device-node",
    "container",
    "variable",
    "package",
    "python",
    "keras",
    "library",
    "toolkit",
    "system",
    "moment",
]
"""`library`: a shared library that changed without a change of its package or of the search path.
`moment`: free memory and running processes, which differ between any two snapshots."""


class Difference(NamedTuple):
    """A fact that a person would name, such as the driver or one package, and its two values.

    It includes everything that follows from the fact: with the version of a package come its
    files, the libraries in it and the builds that they show.
    """

    kind: FactKind
    name: str
    """torch, CUDA_VISIBLE_DEVICES, GPU 0, /dev/nvidia0; for a driver "driver"."""
    before: str
    """Its value in words; empty if it is not there."""
    after: str
    comparable: bool
    """Whether both sides were checked. If not, nobody knows whether it changed."""
    places: tuple[str, ...]
    """Where in the snapshot: driver.version, target.packages[torch].version."""

    @property
    def title(self) -> str:
        """What changed, as it is called in a sentence: the driver, torch, the kernel."""
        if self.kind == "toolkit":
            return f"the CUDA toolkit {self.name}"
        if self.kind in ("variable", "package", "library", "device-node") or self.name in _NAMES:
            return self.name
        return self.name if self.name.startswith("GPU ") else f"the {self.name}"

    @property
    def values(self) -> str:
        """580.65.06 → 535.104.05."""
        nothing = _NOTHING.get(self.kind, "none")
        return f"{self.before or nothing} → {self.after or nothing}"


_NAMES = ("Python", "WSL", "nvidia_uvm", "/dev/shm")
"""Names that have no article."""
_NOTHING: dict[str, str] = {"variable": "not set", "package": "not installed"}


Basis = Literal["files", "run"]
"""`files`: the facts alone show the fault. `run`: the facts show it together with what the
frameworks did when they ran on the side that has the fault."""


class Reason(NamedTuple):
    """Why one root cause, or one framework's verdict, is on one side only."""

    finding: Finding | None
    """None: the verdict of frameworks changed, and no finding says why."""
    frameworks: tuple[str, ...]
    """The frameworks whose verdict changed, if there is no finding; else empty."""
    present: Literal["before", "after"]
    """The side that has the fault."""
    sets: tuple[tuple[int, ...], ...]
    """Positions in `DiffAnswer.differences`. Each set, put into the side without the fault, makes
    the fault appear, and no smaller part of it does. Empty if unknown."""
    basis: Basis
    certainly_all: bool
    """Whether the differences outside all sets together were tried, and do not show the fault."""
    unexplained: str
    """Why there is no set; empty if there is one."""
    suspects: tuple[int, ...] = ()
    """If there is no set: differences that could have to do with it, most likely first."""


class Side(NamedTuple):
    """One of the two machines that are compared."""

    name: str
    """The file, environment or date, as the user knows it."""
    taken: str
    whygpu: str
    verdict: MachineVerdict
    headline: str
    was_run: bool
    """Whether the frameworks were run there."""


class FrameworkChange(NamedTuple):
    name: str
    before: FrameworkVerdict
    after: FrameworkVerdict


@shows_itself
class DiffAnswer(NamedTuple):
    before: Side
    after: Side
    frameworks: tuple[FrameworkChange, ...]
    """Every framework of one of the sides, also if its verdict is the same."""
    differences: tuple[Difference, ...]
    """Those that explain something first."""
    reasons: tuple[Reason, ...]
    headline: str
    standing: Standing
    notes: tuple[str, ...]
    """What limits the answer."""
    trials: int
    """How many machines were put together and judged."""

    @property
    def explaining(self) -> frozenset[int]:
        """Positions of the differences that explain something."""
        return frozenset(place for reason in self.reasons for each in reason.sets for place in each)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
