"""Names the leaves that differ by the facts that a person would name.

One change shows in many places of a snapshot: a new release of a package changes its metadata, the
build of a framework, copies of libraries and what the loader finds. All these leaves belong to one
fact, and they are put into a machine together, because a machine with half of them cannot exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

from whygpu.differences.tree import Leaf, Path
from whygpu.model.differences import FactKind
from whygpu.model.driver import DriverLibrary
from whygpu.model.libraries import LibraryCopy, Resolution
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.tables.distributions import PROVIDERS

SEARCH_PATH = "LD_LIBRARY_PATH"
_JAX_PARTS = ("jaxlib", "jax-cuda", "jax-rocm", "jax-metal")
_OF_THE_DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
_MOMENT = ("memory_used_bytes", "memory_reserved_bytes", "processes")
_OF_ONE_GPU = {
    "compute_mode": "compute mode of ",
    "mig": "MIG mode of ",
    "ecc_uncorrected": "memory errors of ",
    "health": "hardware state of ",
}
_OF_ITS_HARDWARE = {
    "vbios": "firmware of ",
    "ecc": "ECC mode of ",
    "persistence": "persistence mode of ",
    "power_limit_watts": "power limit of ",
    "power_default_watts": "power limit of ",
    "max_clock_mhz": "highest clocks of ",
    "max_memory_clock_mhz": "highest clocks of ",
    "slowdowns": "slowdowns of ",
    "pcie": "PCIe link of ",
    "rows": "memory repairs of ",
    "pages_pending": "memory repairs of ",
    "nvlinks": "NVLinks of ",
    "nvlinks_there": "NVLinks of ",
    "mig_layout": "MIG layout of ",
    "fabric": "NVSwitch fabric of ",
}
_LASTING_A_MOMENT = ("slowdowns", "generation")
"""An idle GPU lowers the generation of its link."""
_OF_THE_SYSTEM = {
    "os": "operating system",
    "kernel": "kernel",
    "distribution": "operating system",
    "libc": "C library",
    "cpu": "processor",
    "wsl": "WSL",
}
_OF_MEMORY = {"total_bytes": "main memory", "shared_bytes": "/dev/shm"}


class Fact(NamedTuple):
    kind: FactKind
    name: str


DRIVER = Fact("driver", "driver")


class Facts:
    """Both snapshots and what differs between them, to decide what a difference belongs to."""

    def __init__(self, before: Snapshot, after: Snapshot, leaves: tuple[Leaf, ...]) -> None:
        self._sides = (before, after)
        self._variables = {
            leaf.path[2][0]
            for leaf in leaves
            if leaf.path[:2] == ("environment", "variables") and len(leaf.path) > 2
        }
        self._packages = {
            _family(leaf.path[2][0])
            for leaf in leaves
            if leaf.path[:2] == ("target", "packages") and len(leaf.path) > 2
        }
        self._driver_changed = any(
            leaf.path[0] == "driver" and leaf.path[1] in ("state", "version", "kernel_module")
            for leaf in leaves
        )
        self._owners = self._owners_of_copies()
        self._folders = self._folders_that_changed()
        self._gpu_numbers = {
            gpu.pci_address: gpu.number
            for side in self._sides
            if isinstance(side.driver.gpus, Known)
            for gpu in side.driver.gpus.value
        }

    def of(self, leaf: Leaf) -> Fact:
        """The fact that a leaf belongs to."""
        return _RULES[leaf.path[0]](self, leaf)

    def comparable(self, leaf: Leaf) -> bool:
        """Whether both sides were checked. A driver that stopped working leaves facts about it
        unknown, and that is what changed."""
        return leaf.comparable or (leaf.path[0] == "driver" and self._driver_changed)

    def _system(self, leaf: Leaf) -> Fact:
        part = leaf.path[1]
        if part == "container":
            return Fact("container", "container")
        if part == "memory":
            name = _OF_MEMORY.get(str(leaf.path[2]))
            return Fact("system", name) if name else Fact("moment", "free main memory")
        return Fact("system", _OF_THE_SYSTEM[str(part)])

    def _graphics(self, leaf: Leaf) -> Fact:
        if len(leaf.path) == 1:
            return Fact("gpu", "graphics devices")
        address = leaf.path[1][0]
        number = self._gpu_numbers.get(address)
        return Fact("gpu", f"device {address}" if number is None else f"GPU {number}")

    def _amd(self, leaf: Leaf) -> Fact:
        part = leaf.path[1] if len(leaf.path) > 1 else ""
        if part == "device_nodes" and len(leaf.path) > 2:
            return Fact("device-node", leaf.path[2][0])
        return Fact("library", "ROCm") if part == "rocm" else Fact("driver", "driver of AMD GPUs")

    def _intel(self, leaf: Leaf) -> Fact:
        part = leaf.path[1] if len(leaf.path) > 1 else ""
        if part == "device_nodes" and len(leaf.path) > 2:
            return Fact("device-node", leaf.path[2][0])
        return Fact("driver", "driver of Intel GPUs")

    def _driver(self, leaf: Leaf) -> Fact:
        part = leaf.path[1]
        if part == "cuda_library" or part == "nvml_library":
            return self._driver_library(leaf)
        if part == "device_nodes" and len(leaf.path) > 2 and not self._driver_changed:
            return Fact("device-node", leaf.path[2][0])
        if part == "gpus" and len(leaf.path) > 2:
            return _of_one_gpu(f"GPU {leaf.path[2][0]}", leaf.path[3:])
        if part == "pairs" and not self._driver_changed:
            return Fact("gpu", "connections between the GPUs")
        if part == "xids":
            return Fact("moment", "Xids in the kernel log")
        if part == "uvm" and not self._driver_changed:
            return Fact("driver", "nvidia_uvm")
        return DRIVER

    def _driver_library(self, leaf: Leaf) -> Fact:
        """A copy that LD_LIBRARY_PATH, or somebody's package, puts before the driver's own."""
        libraries = [
            side.value
            for side in (leaf.before, leaf.after)
            if isinstance(side, Known) and isinstance(side.value, DriverLibrary)
        ]
        if self._driver_changed and len(libraries) < 2:
            return DRIVER
        if any(self._is_searched_differently(library.path) for library in libraries):
            return Fact("variable", SEARCH_PATH)
        if any(library.kind in ("compat", "toolkit-stub") for library in libraries):
            return Fact("library", "libcuda.so.1" if leaf.path[1] == "cuda_library" else "NVML")
        return DRIVER

    def _environment(self, leaf: Leaf) -> Fact:
        if leaf.path[1] == "visible_gpus":
            return Fact("variable", "CUDA_VISIBLE_DEVICES")
        return Fact("variable", leaf.path[2][0] if len(leaf.path) > 2 else "variables")

    def _cuda(self, leaf: Leaf) -> Fact:
        if len(leaf.path) < 3:
            return Fact("library", "CUDA files")
        copy = leaf.either
        if isinstance(copy, LibraryCopy):
            owner = self._changed_owner(copy.path)
            if owner is not None:
                return _package(owner)
            if self._is_searched_differently(copy.path):
                return Fact("variable", SEARCH_PATH)
            return Fact("library", copy.soname)
        return Fact("toolkit", leaf.path[2][0])

    def _target(self, leaf: Leaf) -> Fact:
        part = leaf.path[1]
        if part == "packages" and len(leaf.path) > 2:
            return _package(leaf.path[2][0])
        if part == "conflicts" and len(leaf.path) > 2:
            return _package(leaf.path[2][0])
        if part == "frameworks" and len(leaf.path) > 2:
            return self._framework(leaf)
        if part == "interpreter" and len(leaf.path) > 2:
            return self._interpreter(leaf)
        return Fact("python", {"installer": "installer"}.get(str(part), "environment"))

    def _interpreter(self, leaf: Leaf) -> Fact:
        field = leaf.path[2]
        if field == "modules" and len(leaf.path) > 3:
            name = leaf.path[3][0]
            return _package(name) if name in self._packages else Fact("python", "search path")
        if field == "paths" or field == "user_site":
            searched = "PYTHONPATH" if field == "paths" else "PYTHONNOUSERSITE"
            if searched in self._variables:
                return Fact("variable", searched)
            return Fact("python", "search path")
        return Fact("python", "startup files" if field == "complaints" else "Python")

    def _framework(self, leaf: Leaf) -> Fact:
        name = leaf.path[2][0]
        field = leaf.path[3] if len(leaf.path) > 3 else ""
        if field == "keras":
            if "KERAS_BACKEND" in self._variables:
                return Fact("variable", "KERAS_BACKEND")
            return Fact("keras", "Keras settings")
        if field == "libraries" and len(leaf.path) > 4:
            return self._resolution(leaf, name)
        return _package(name)

    def _resolution(self, leaf: Leaf, framework: str) -> Fact:
        """What changed, if a library now loads from elsewhere or not at all."""
        sides = [side for side in (leaf.before, leaf.after) if isinstance(side, Resolution)]
        folders = chain.from_iterable(side.searched for side in sides)
        paths = [side.path for side in sides if side.path is not None]
        if sides[0].library in _OF_THE_DRIVER and self._driver_changed and len(paths) < 2:
            return DRIVER
        if any(map(self._is_searched_differently, paths)) or any(
            searched.kind == "ld-library-path"
            and searched.result != "not-there"
            and searched.path in self._folders
            for searched in folders
        ):
            return Fact("variable", SEARCH_PATH)
        wanted = [side.library for side in sides] + [name for side in sides for name in side.chain]
        for name in chain(paths, reversed(wanted)):
            owner = self._changed_owner(name)
            if owner is not None:
                return _package(owner)
        if framework in self._packages:
            return _package(framework)
        return Fact("library", sides[-1].chain[-1] if sides[-1].chain else sides[-1].library)

    def _owners_of_copies(self) -> dict[str, str]:
        """The package that installed a library, by its path and by its name."""
        owners: dict[str, str] = {}
        for side in self._sides:
            for copy in side.cuda.value.copies if isinstance(side.cuda, Known) else ():
                owner = copy.owner.partition(" ")[0]
                if owner:
                    owners[copy.path] = owner
                    owners.setdefault(copy.soname, owner)
        return owners

    def _changed_owner(self, library: str) -> str | None:
        owner = self._owners.get(library)
        return owner if owner is not None and _family(owner) in self._packages else None

    def _folders_that_changed(self) -> frozenset[str]:
        """Folders on one side's LD_LIBRARY_PATH only; all of them if only their order changed."""
        if SEARCH_PATH not in self._variables:
            return frozenset()
        first, second = (_folders_of(side) for side in self._sides)
        return first ^ second or first

    def _is_searched_differently(self, path: str) -> bool:
        return path.rpartition("/")[0] in self._folders


def _of_one_gpu(gpu: str, path: Path) -> Fact:
    """What a part of the facts about one GPU is called. The empty path is the whole GPU."""
    field = str(path[0]) if path else ""
    if field in _MOMENT:
        return Fact("moment", f"memory in use on {gpu}")
    if field == "health" and len(path) > 1:
        lasts = path[-1] not in _LASTING_A_MOMENT
        name = _OF_ITS_HARDWARE.get(str(path[1]), _OF_ONE_GPU[field])
        return Fact("gpu" if lasts else "moment", name + gpu)
    return Fact("gpu", _OF_ONE_GPU.get(field, "") + gpu)


def _folders_of(side: Snapshot) -> frozenset[str]:
    value = side.environment.get(SEARCH_PATH)
    folders = value.value.split(":") if isinstance(value, Known) else ()
    return frozenset(folder.rstrip("/") for folder in folders if folder)


_FRAMEWORK_OF = {provider.name: provider.framework for provider in PROVIDERS}


def _family(package: str) -> str:
    """The distributions that provide one framework are one fact: tensorflow, or tensorflow-cpu
    instead of it; jax, jaxlib and its plugins, which must have matching versions."""
    return "jax" if package.startswith(_JAX_PARTS) else _FRAMEWORK_OF.get(package, package)


def _package(name: str) -> Fact:
    return Fact("package", _family(name))


_RULES: dict[Any, Callable[[Facts, Leaf], Fact]] = {
    "system": Facts._system,
    "graphics": Facts._graphics,
    "driver": Facts._driver,
    "environment": Facts._environment,
    "cuda": Facts._cuda,
    "target": Facts._target,
    "amd": Facts._amd,
    "intel": Facts._intel,
}


def grouped(facts: Facts, leaves: Iterable[Leaf]) -> dict[tuple[Fact, bool], list[Leaf]]:
    """The leaves of each fact; those that only one side has checked are kept apart."""
    groups: dict[tuple[Fact, bool], list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault((facts.of(leaf), facts.comparable(leaf)), []).append(leaf)
    return groups
