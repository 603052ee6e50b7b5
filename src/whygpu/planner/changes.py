"""Finds the smallest change to the machine or the wishes that makes a plan possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from typing import NamedTuple, TypeVar

from whygpu.model.install_plan import Change, ChangeKind, Wish
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Known
from whygpu.planner.candidates import Table, candidates
from whygpu.planner.constraints import first_branch_knowing
from whygpu.planner.planning import make_plan
from whygpu.tables.architectures import TEGRA
from whygpu.tables.driver_branches import is_after, last_branch_for
from whygpu.tables.driver_floors import FLOORS
from whygpu.tables.python_releases import RELEASES
from whygpu.tables.versions import release_numbers
from whygpu.tables.windows_driver_floors import WINDOWS_FLOORS

_Fact = TypeVar("_Fact", str, tuple[PlannedGpu, ...])


class Relaxed(NamedTuple):
    """One change to the facts of the machine or to the wishes."""

    kind: ChangeKind
    what: str
    """The change, as the end of a sentence that starts with "Possible with"."""
    facts: Mapping[str, Known[str] | Known[tuple[PlannedGpu, ...]] | bool]
    wishes: tuple[Wish, ...] | None = None


def changes(machine: MachineSpec, wishes: tuple[Wish, ...], table: Table) -> tuple[Change, ...]:
    """One sufficient change of each kind; pairs of changes only if no single one suffices."""
    kinds = list(_relaxations(machine, wishes, table))

    def first(options: Iterable[tuple[Relaxed, ...]]) -> Change | None:
        doubtful: Change | None = None
        for option in options:
            change = _made_possible(option, machine, wishes, table)
            if change is not None and not change.doubt:
                return change
            doubtful = doubtful or change
        return doubtful

    singles = [first((option,) for option in options) for options in kinds]
    if any(singles):
        return tuple(change for change in singles if change)
    pairs = [first(product(*two)) for two in combinations(kinds, 2)]
    return tuple(change for change in pairs if change)[:2]


def undoubted(machine: MachineSpec, wishes: tuple[Wish, ...], table: Table) -> tuple[Change, ...]:
    """What to change instead of installing a release that reports say is likely not to work."""
    return tuple(change for change in changes(machine, wishes, table) if not change.doubt)


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
    kinds = tuple(relaxed.kind for relaxed in option)
    return Change(kinds, what, plan.chosen, plan.likely_failure)


def _relaxations(
    machine: MachineSpec, wishes: tuple[Wish, ...], table: Table
) -> Iterator[list[Relaxed]]:
    """The changes of each kind, smallest first."""
    usual = "the usual build of " if machine.free_threaded else ""
    yield [
        Relaxed("release", f"another release of {wish.framework}", {}, _open(wishes, place))
        for place, wish in enumerate(wishes)
        if wish.specifier
    ]
    yield [
        Relaxed("python", f"{usual}Python {version}", _usual_python(version))
        for version in _pythons(machine)
    ]
    yield [
        Relaxed("driver", _driver_words(machine, driver), {"driver": _as(driver)})
        for driver in _drivers(machine)
    ]
    yield [
        Relaxed("glibc", f"a system with glibc {glibc} or newer", {"glibc": _as(glibc)})
        for glibc in _glibcs(machine, wishes, table)
    ]
    yield [
        Relaxed("gpu", f"CUDA_VISIBLE_DEVICES set to show only {name}", {"gpus": _as(gpus)})
        for name, gpus in _single_models(machine)
    ]
    if machine.platform_name == "win_amd64":
        yield [Relaxed("platform", "Linux, as in WSL2", {"platform": _as("linux_x86_64")})]


def _driver_words(machine: MachineSpec, driver: str) -> str:
    last = _last_branch(machine)
    if last is None:
        return f"driver {driver} or newer{_compat(machine)}"
    if release_numbers(driver)[0] >= last:
        return f"a driver of branch {last}, the last one for this GPU"
    return f"driver {driver} or newer, up to branch {last}{_compat(machine)}"


def _last_branch(machine: MachineSpec) -> int | None:
    """The last driver branch that supports all GPUs; None if the newest does."""
    gpus = machine.gpus.value if isinstance(machine.gpus, Known) else ()
    rows = (last_branch_for(gpu.capability) for gpu in gpus if gpu.capability not in TEGRA)
    return min((row.branch for row in rows if row), default=None)


def _compat(machine: MachineSpec) -> str:
    """NVIDIA lets data-center GPUs run newer CUDA releases on an older kernel driver."""
    gpus = machine.gpus.value if isinstance(machine.gpus, Known) else ()
    on_linux = machine.platform_name.startswith("linux")
    if on_linux and gpus and all(gpu.kind == "data-center" for gpu in gpus):
        return " (or NVIDIA's forward-compatibility package, cuda-compat)"
    return ""


def _open(wishes: tuple[Wish, ...], place: int) -> tuple[Wish, ...]:
    return (*wishes[:place], wishes[place]._replace(specifier=""), *wishes[place + 1 :])


def _as(value: _Fact) -> Known[_Fact]:
    return Known(value, "a change")


def _single_models(machine: MachineSpec) -> Iterator[tuple[str, tuple[PlannedGpu, ...]]]:
    """The GPUs of each capability, if a machine has different ones: the newest first."""
    gpus = machine.gpus.value if isinstance(machine.gpus, Known) else ()
    capabilities = sorted({gpu.capability for gpu in gpus}, reverse=True)
    for capability in capabilities if len(capabilities) > 1 else ():
        alike = tuple(gpu for gpu in gpus if gpu.capability == capability)
        yield " and ".join(dict.fromkeys(map(str, alike))), alike


def _usual_python(version: str) -> dict[str, Known[str] | bool]:
    return {"python": _as(version), "free_threaded": False}


def _pythons(machine: MachineSpec) -> list[str]:
    """Other Python versions, the nearest first, newer before older.

    For a free-threaded build, the usual build of its own version is another one.
    """
    mine = machine.python_build
    own = release_numbers(machine.python_minor or "")
    if len(own) < 2:
        return []

    def distance(version: str) -> tuple[int, int, int]:
        major, minor = release_numbers(version)
        return (abs(major - own[0]), abs(minor - own[1]), -minor)

    return sorted((row.version for row in RELEASES if row.version != mine), key=distance)


def _drivers(machine: MachineSpec) -> list[str]:
    """Drivers that make a difference and support the GPU, smallest step first: newer ones, or the
    last one for the GPU if the driver is too new for it.
    """
    if not isinstance(machine.driver, Known):
        return []
    gpus = machine.gpus.value if isinstance(machine.gpus, Known) else ()
    last = _last_branch(machine)
    if last is not None and is_after(machine.driver.value, last):
        return [str(last)]
    known = [first for gpu in gpus if (first := first_branch_knowing(gpu.capability))]
    windows = machine.platform_name == "win_amd64"
    rows = WINDOWS_FLOORS if windows else FLOORS
    floors = {row.driver for row in rows} | {str(first.branch) for first in known}
    return [
        floor
        for floor in _newer(floors, machine.driver.value)
        if last is None or release_numbers(floor)[0] <= last
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
