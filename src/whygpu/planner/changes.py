"""Finds the smallest change to the machine or the wishes that makes a plan possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import NamedTuple

from whygpu.model.install_plan import Change, ChangeKind, Wish
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known
from whygpu.planner.candidates import Table, candidates
from whygpu.planner.constraints import first_branch_knowing
from whygpu.planner.planning import make_plan
from whygpu.tables.driver_branches import last_branch_for
from whygpu.tables.driver_floors import FLOORS
from whygpu.tables.python_releases import RELEASES
from whygpu.tables.versions import release_numbers
from whygpu.tables.windows_driver_floors import WINDOWS_FLOORS


class Relaxed(NamedTuple):
    """One change to the facts of the machine or to the wishes."""

    kind: ChangeKind
    what: str
    """The change, as the end of a sentence that starts with "Possible with"."""
    facts: dict[str, Known[str]]
    wishes: tuple[Wish, ...] | None = None


def changes(machine: MachineSpec, wishes: tuple[Wish, ...], table: Table) -> tuple[Change, ...]:
    """One sufficient change of each kind; pairs of changes only if no single one suffices."""
    kinds = list(_relaxations(machine, wishes, table))

    def first(options: Iterable[tuple[Relaxed, ...]]) -> Change | None:
        made = (_made_possible(option, machine, wishes, table) for option in options)
        return next((change for change in made if change is not None), None)

    singles = [first((option,) for option in options) for options in kinds]
    if any(singles):
        return tuple(change for change in singles if change)
    pairs = [first(product(*two)) for two in combinations(kinds, 2)]
    return tuple(change for change in pairs if change)[:2]


def _made_possible(
    option: tuple[Relaxed, ...], machine: MachineSpec, wishes: tuple[Wish, ...], table: Table
) -> Change | None:
    for relaxed in option:
        machine = machine._replace(**relaxed.facts)  # type: ignore[arg-type]
        wishes = relaxed.wishes or wishes
    plan = make_plan(machine, wishes, table).plan
    if plan is None:
        return None
    what = " and ".join(relaxed.what for relaxed in option)
    return Change(tuple(relaxed.kind for relaxed in option), what, plan.chosen)


def _relaxations(
    machine: MachineSpec, wishes: tuple[Wish, ...], table: Table
) -> Iterator[list[Relaxed]]:
    """The changes of each kind, smallest first."""
    yield [
        Relaxed("release", f"another release of {wish.framework}", {}, _open(wishes, place))
        for place, wish in enumerate(wishes)
        if wish.specifier
    ]
    yield [
        Relaxed("python", f"Python {version}", {"python": _as(version)})
        for version in _pythons(machine)
    ]
    yield [
        Relaxed("driver", f"driver {driver} or newer{_compat(machine)}", {"driver": _as(driver)})
        for driver in _drivers(machine)
    ]
    yield [
        Relaxed("glibc", f"a system with glibc {glibc} or newer", {"glibc": _as(glibc)})
        for glibc in _glibcs(machine, wishes, table)
    ]
    if machine.platform_name == "win_amd64":
        yield [Relaxed("platform", "Linux, as in WSL2", {"platform": _as("linux_x86_64")})]


def _compat(machine: MachineSpec) -> str:
    """NVIDIA lets data-center GPUs run newer CUDA releases on an older kernel driver."""
    gpus = machine.gpus.value if isinstance(machine.gpus, Known) else ()
    on_linux = machine.platform_name.startswith("linux")
    if on_linux and gpus and all(gpu.kind == "data-center" for gpu in gpus):
        return " (or NVIDIA's forward-compatibility package, cuda-compat)"
    return ""


def _open(wishes: tuple[Wish, ...], place: int) -> tuple[Wish, ...]:
    return (*wishes[:place], wishes[place]._replace(specifier=""), *wishes[place + 1 :])


def _as(value: str) -> Known[str]:
    return Known(value, "a change")


def _pythons(machine: MachineSpec) -> list[str]:
    """Other Python versions, the nearest first, newer before older."""
    mine = machine.python_minor
    own = release_numbers(mine or "")
    if len(own) < 2:
        return []

    def distance(version: str) -> tuple[int, int, int]:
        major, minor = release_numbers(version)
        return (abs(major - own[0]), abs(minor - own[1]), -minor)

    return sorted((row.version for row in RELEASES if row.version != mine), key=distance)


def _drivers(machine: MachineSpec) -> list[str]:
    """Newer drivers that make a difference and still support the GPU, smallest step first."""
    if not isinstance(machine.driver, Known):
        return []
    gpus = machine.gpus.value if isinstance(machine.gpus, Known) else ()
    last = [row.branch for gpu in gpus if (row := last_branch_for(gpu.capability))]
    known = [first for gpu in gpus if (first := first_branch_knowing(gpu.capability))]
    windows = machine.platform_name == "win_amd64"
    rows = WINDOWS_FLOORS if windows else FLOORS
    floors = {row.driver for row in rows} | {str(first.branch) for first in known}
    return [
        floor
        for floor in _newer(floors, machine.driver.value)
        if not last or release_numbers(floor)[0] <= min(last)
    ]


def _glibcs(machine: MachineSpec, wishes: tuple[Wish, ...], table: Table) -> list[str]:
    """The minimum glibc versions of the frameworks' releases above this machine's glibc."""
    if not isinstance(machine.glibc, Known):
        return []
    floors = {
        floor
        for wish in wishes
        for candidate in candidates(wish.framework, table, machine.platform_name)
        for part in candidate.parts
        if (floor := part.glibc_for(machine.platform_name))
    }
    return _newer(floors, machine.glibc.value)


def _newer(versions: Iterable[str], mine: str) -> list[str]:
    """The versions after mine, oldest first."""
    newer = (each for each in versions if release_numbers(each) > release_numbers(mine))
    return sorted(newer, key=release_numbers)
