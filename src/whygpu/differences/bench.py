"""Puts machines together that have some facts of one snapshot and the rest of another.

Some facts follow from others: the GPUs that CUDA_VISIBLE_DEVICES selects from the GPUs that there
are, the conflicts between packages from the packages, and the versions of the driver's own
libraries from the driver. They are computed again for each machine. What the frameworks did when
they ran cannot be computed: it is left out, or taken from one side.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.collectors.driver_answer import GpuIds
from whygpu.collectors.environment import CUDA_VISIBLE_DEVICES
from whygpu.collectors.requirements import conflicts
from whygpu.collectors.visible_devices import SOURCE, select
from whygpu.differences.facts import Fact, Facts, grouped
from whygpu.differences.tree import Comparison, Leaf, compare, same
from whygpu.model.driver import Driver, DriverLibrary
from whygpu.model.environment import GpuSelection
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import NOT_STRESSED
from whygpu.model.target import Package, RequirementConflict
from whygpu.tables.distributions import matters

NOT_RUN = "this machine was put together from two snapshots, so nothing could be run on it"
_LEFT_OUT = Absent("left out of the comparison")
_NO_IDENTIFIERS: tuple[GpuIds, ...] = ()


class FactDifference(NamedTuple):
    """One fact that differs, with its leaves."""

    fact: Fact
    comparable: bool
    leaves: tuple[Leaf, ...]

    @property
    def bits(self) -> int:
        return sum(leaf.bits for leaf in self.leaves)


class Bench:
    """Two snapshots, what differs between them, and mixtures of both."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self.before = before
        self.after = after
        # A snapshot that somebody has edited may contradict itself. Then its facts are compared as
        # they are.
        self._selects = all(
            same(_selection(side), side.environment.visible_gpus) for side in (before, after)
        )
        self._resolves = all(
            _names(conflicts(side.target.packages)) == _names(side.target.conflicts)
            for side in (before, after)
        )
        self._has_own_libraries = all(map(_has_own_libraries, (before, after)))
        self._own_words = _own_words(before, after)
        self._comparison: Comparison = compare(self._compared(before), self._compared(after))
        leaves = self._comparison.leaves
        groups = grouped(Facts(before, after, leaves), leaves)
        self.differences = tuple(
            FactDifference(fact, comparable, tuple(items))
            for (fact, comparable), items in groups.items()
        )
        self.trials = 0
        self._deciding = _deciding_conflicts(leaves)
        self._known_conflicts = {0: before.target.conflicts, self._deciding: after.target.conflicts}

    @property
    def everything(self) -> int:
        return self._comparison.everything

    def machine(self, chosen: int) -> Snapshot:
        """The machine before, with the chosen leaves as they are after, on which nothing ran."""
        self.trials += 1
        mixed: Snapshot = self._comparison.mixture(chosen)
        if self._selects:
            environment = mixed.environment._replace(visible_gpus=_selection(mixed))
            mixed = mixed._replace(environment=environment)
        if self._resolves:
            target = mixed.target._replace(conflicts=self._conflicts_of(mixed, chosen))
            mixed = mixed._replace(target=target)
        if self._has_own_libraries:
            mixed = mixed._replace(driver=_with_own_libraries(mixed.driver))
        return self._with_fitting_builds(mixed)

    def _with_fitting_builds(self, mixed: Snapshot) -> Snapshot:
        """With packages of the other side built for the Python and the processor of this machine:
        a package that moves there is installed there."""
        packages = mixed.target.packages
        if not self._own_words or not isinstance(packages, Known):
            return mixed
        words = {
            word: fitting
            for pair in self._own_words
            for word, fitting in zip(pair, _build_words(mixed), strict=True)
            if word != fitting
        }
        pattern = re.compile("|".join(rf"(?<![a-z0-9]){re.escape(word)}(?!\d)" for word in words))
        fitted = tuple(
            package._replace(
                wheel_tags=tuple(
                    pattern.sub(lambda match: words[match[0]], tag) for tag in package.wheel_tags
                )
            )
            for package in packages.value
        )
        known = Known(fitted, packages.source)
        return mixed._replace(target=mixed.target._replace(packages=known))

    def _conflicts_of(self, mixed: Snapshot, chosen: int) -> Conflicts:
        key = chosen & self._deciding
        if key not in self._known_conflicts:
            self._known_conflicts[key] = conflicts(mixed.target.packages)
        return self._known_conflicts[key]

    def _compared(self, machine: Snapshot) -> Snapshot:
        """What is compared: not when and by whom it was taken, not what follows from the rest, and
        not the speed of this moment."""
        machine = machine._replace(whygpu="", taken="", probes=(), probes_left_out=NOT_RUN)
        machine = machine._replace(stress=NOT_STRESSED)
        if self._selects:
            environment = machine.environment._replace(visible_gpus=_LEFT_OUT)
            machine = machine._replace(environment=environment)
        if self._resolves:
            machine = machine._replace(target=machine.target._replace(conflicts=_LEFT_OUT))
        return machine


def _has_own_libraries(machine: Snapshot) -> bool:
    """Whether the driver's own libraries have the version of its kernel module."""
    driver = machine.driver
    return isinstance(driver.kernel_module, Known) and driver == _with_own_libraries(driver)


def _with_own_libraries(driver: Driver) -> Driver:
    """With the libraries that come with the kernel module. Copies of other origin, such as a
    compatibility package, stay as they are."""
    module = driver.kernel_module
    if not isinstance(module, Known):
        return driver
    return driver._replace(
        cuda_library=_of_release(driver.cuda_library, module.value),
        nvml_library=_of_release(driver.nvml_library, module.value),
    )


def _of_release(library: Observed[DriverLibrary], version: str) -> Observed[DriverLibrary]:
    if not isinstance(library, Known) or library.value.kind != "driver":
        return library
    known = library.value.version
    if not isinstance(known, Known) or known.value == version:
        return library
    own = library.value._replace(version=Known(version, known.source))
    return Known(own, library.source)


BuildWords = tuple[str, str]
"""The words in the name of a wheel that must fit the machine: cp312, x86_64."""


def _build_words(machine: Snapshot) -> BuildWords:
    interpreter = machine.target.interpreter
    version = interpreter.value.version if isinstance(interpreter, Known) else ""
    return "cp" + "".join(version.split(".")[:2]), machine.system.cpu.architecture


def _own_words(before: Snapshot, after: Snapshot) -> tuple[BuildWords, BuildWords] | None:
    """The build words of both machines, if they differ and no machine has packages for the other.

    If it has, the packages may be what is wrong with it: Python was updated, and they were not.
    """
    words = (_build_words(before), _build_words(after))
    if words[0] == words[1]:
        return None
    for machine, own, foreign in ((before, words[0], words[1]), (after, words[1], words[0])):
        packages = machine.target.packages
        wrong = [word for word in foreign if word not in own]
        for package in packages.value if isinstance(packages, Known) else ():
            if any(word in tag for word in wrong for tag in package.wheel_tags):
                return None
    return words


Conflicts = Observed[tuple[RequirementConflict, ...]]


def _deciding_conflicts(leaves: tuple[Leaf, ...]) -> int:
    """The leaves of packages that have requirements, or that requirements can be about."""
    bits = 0
    for leaf in leaves:
        if leaf.path[:2] == ("target", "packages"):
            item = leaf.either
            name = leaf.path[2][0] if len(leaf.path) > 2 else ""
            requires = isinstance(item, Package) and item.requires
            if not name or requires or leaf.path[-1] == "requires" or matters(name):
                bits |= leaf.bits
    return bits


def _selection(machine: Snapshot) -> Observed[GpuSelection]:
    """The GPUs that are visible, computed from the variable and the GPUs.

    A snapshot does not contain the identifiers of GPUs, so that a list of these cannot be computed.
    """
    text = machine.environment.get(CUDA_VISIBLE_DEVICES)
    if not isinstance(text, Known):
        return Absent(SOURCE)
    order = machine.environment.get("CUDA_DEVICE_ORDER")
    given = order.value if isinstance(order, Known) else ""
    return Known(select(text.value, machine.driver, _NO_IDENTIFIERS, given), SOURCE)


def _names(
    found: Conflicts,
) -> frozenset[tuple[str, str]] | None:
    if not isinstance(found, Known):
        return None
    return frozenset((conflict.package, conflict.requirement) for conflict in found.value)
