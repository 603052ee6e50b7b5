"""The releases of the table that are usable on one machine, and their requirements, cached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from whygpu.model.install_plan import Candidate
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known
from whygpu.model.release import Release
from whygpu.planner.candidates import Table, requires_on, without_nvidia
from whygpu.planner.constraints import usable
from whygpu.planner.wishes import contains
from whygpu.tables.cudnn_support import cudnn_support
from whygpu.tables.distributions import normalised
from whygpu.tables.keras_backends import BackendLimit, backend_limit
from whygpu.tables.source_releases import source_releases
from whygpu.tables.torch_indexes import cuda_of, tag_of
from whygpu.tables.undeclared_limits import undeclared_limits
from whygpu.tables.versions import release_numbers

SHARED_FOLDERS = ("cudnn", "nccl", "cusparselt", "nvshmem")
"""NVIDIA's wheels of these install the same files for every CUDA release."""
_FIRST_CUDA_FROM_PACKAGES = 12
"""Some builds of PyTorch for CUDA 11 include NVIDIA's libraries instead."""
_ASSUMED_PYTHON = "3.12"
_ZEROS = re.compile(r"(?:\.0)+$")
_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "win": ("win32", "Windows", "nt"),
    "macosx": ("darwin", "Darwin", "posix"),
}


class Need(NamedTuple):
    """A requirement of the user or of a package."""

    name: str
    """A package, one with an extra, a wish ("wish:jax"), or a shared folder ("folder:cudnn")."""
    specifier: str
    owner: str = ""
    """The release whose metadata contain it: jax-cuda12-plugin 0.7.2."""


class CandidateCache:
    """Caches its results, because a plan needs the same ones many times."""

    def __init__(
        self, machine: MachineSpec, table: Table, keras_backend: str | None = None
    ) -> None:
        """`keras_backend` is the backend of Keras, if Keras is among the wishes."""
        self.machine = machine
        self.keras_backend = keras_backend
        self.table = table
        self._is_linux = machine.platform_name.startswith("linux")
        self._environment = marker_environment(machine)
        self._releases: dict[str, tuple[Release, ...]] = {}
        self._by_version: dict[str, dict[str, Release]] = {}
        self._usable: dict[tuple[str, str], bool] = {}
        self._lines: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._needs: dict[tuple[str, str], list[Need]] = {}
        self._closures: dict[str, list[Need]] = {}
        self.met: dict[tuple[str, frozenset[str]], bool] = {}
        """Whether some release satisfies a need, by its name and specifiers."""

    def rows(self, package: str, specifiers: Iterable[str] = ()) -> Iterator[Release]:
        """The releases of a package that can be installed and support the GPU, newest first.

        If a specifier is an exact pin, only that release, to save time.
        """
        exact = next((_exact(specifier) for specifier in specifiers if _exact(specifier)), None)
        if exact is not None:
            row = self._row(package, exact)
            return iter(() if row is None else (row,))
        return (row for row in reversed(self.releases(package)) if self._is_usable(row))

    def releases(self, package: str) -> tuple[Release, ...]:
        """Every release of a package that pip can install, also those without a wheel."""
        if package not in self._releases:
            from_source = source_releases(package)
            rows = (*self.table.versions(package), *from_source)
            # The rows of the table are in order.
            ordered = sorted(rows, key=lambda row: release_numbers(row.version))
            self._releases[package] = tuple(ordered) if from_source else rows
        return self._releases[package]

    def _row(self, package: str, version: str) -> Release | None:
        """One release, if it is usable; 2.8.0+cu126 is the build of 2.8.0 on the index cu126."""
        version, _, tag = version.partition("+")
        if package not in self._by_version:
            rows = self.releases(package)
            self._by_version[package] = {_shortest(row.version): row for row in rows}
        row = self._by_version[package].get(_shortest(version))
        if row is None or not self._is_usable(row):
            return None
        if not tag:
            return row
        return row._replace(version=f"{row.version}+{tag}", requires=requires_on(row, tag))

    def _is_usable(self, row: Release) -> bool:
        key = (row.package, row.version)
        if key not in self._usable:
            self._usable[key] = usable(row, self.machine) and not self.cudnn_refuses(row)
        return self._usable[key]

    def cudnn_refuses(self, row: Release) -> bool:
        """cuDNN drops old GPUs within a major release, and no metadata declare it."""
        gpus = self.machine.gpus
        if not row.package.startswith("nvidia-cudnn-cu") or not isinstance(gpus, Known):
            return False
        served = cudnn_support(row.version)
        return served is not None and any(gpu.capability < served.oldest for gpu in gpus.value)

    def closure(self, candidate: Candidate) -> list[Need]:
        """All requirements that a candidate has through exact pins, at once.

        The resolver then detects a conflict between two wishes at once, without trying every
        version of the packages in between.
        """
        key = candidate.build
        if key not in self._closures:
            extra = f"[{candidate.extra}]" if candidate.extra else ""
            local = f"+{candidate.torch_index}" if candidate.torch_index else ""
            first = Need(f"{candidate.package}{extra}", f"=={candidate.version}{local}")
            self._closures[key] = self._expanded(first)
        return self._closures[key]

    def _expanded(self, first: Need) -> list[Need]:
        needs, waiting = {first: None}, [first]
        while waiting:
            need = waiting.pop()
            exact = _exact(need.specifier) if ":" not in need.name else None
            row = self._row(need.name.partition("[")[0], exact) if exact else None
            if row is not None:
                found = [item for item in self.needs_of(need.name, row) if item not in needs]
                needs.update(dict.fromkeys(found))
                waiting += found
        # Shared folders first: they show most quickly that two builds conflict.
        return sorted(needs, key=lambda need: not need.name.startswith("folder:"))

    def needs_of(self, name: str, row: Release) -> list[Need]:
        """The requirements of a package, or of a package with an extra, with undeclared limits."""
        key = (name, row.version)
        if key not in self._needs:
            if "[" in name:
                package, _, extra = name.rstrip("]").partition("[")
                needs = [Need(package, f"=={row.version}"), *self.declared(row, extra)]
            else:
                needs = self.declared(row, "")
                owner = f"{row.package} {row.version}"
                for requirement in self._undeclared(row):
                    asked = self._asked(requirement, "")
                    needs += [Need(other, specifier, owner) for other, specifier in asked]
                needs += self._folders_on_index(row)
            self._needs[key] = needs
        return self._needs[key]

    def _folders_on_index(self, row: Release) -> Iterator[Need]:
        """The folders that a build on another index of PyTorch shares with other frameworks.

        The versions of its packages were not read, but since CUDA 12 each build requires the
        packages of NVIDIA that the default build requires, for its own CUDA release.
        """
        version, _, tag = row.version.partition("+")
        default = self._by_version[row.package].get(_shortest(version)) if tag else None
        if default is None or tag == tag_of(default.cuda) or not self._is_linux:
            return
        major = int(cuda_of(tag).partition(".")[0])
        if major < _FIRST_CUDA_FROM_PACKAGES:
            return
        for line in default.requires:
            folder = _shared_folder(line)
            if folder is not None:
                package = f"nvidia-{folder}-cu{major}"
                yield Need(f"folder:{folder}", f"=={package}", f"{row.package} {row.version}")

    def _undeclared(self, row: Release) -> Iterator[str]:
        """Requirements that the metadata leave out."""
        for limit in undeclared_limits(row.package, row.version):
            yield limit.requirement
        on_backend = self.backend_limit(row.package, row.version)
        if on_backend is not None and on_backend.requirement is not None:
            yield on_backend.requirement

    def backend_limit(self, package: str, version: str) -> BackendLimit | None:
        """The known problem of this release of Keras with the chosen backend."""
        if package != "keras" or self.keras_backend is None:
            return None
        return backend_limit(version, self.keras_backend)

    def declared(self, row: Release, extra: str) -> list[Need]:
        """The requirements in the metadata: without an extra, or only those that the extra adds."""
        owner = f"{row.package} {row.version}"
        # Rows are read from Linux wheels. Those of torch 1.13.0 lack the marker for Linux.
        is_linux_only = row.package == "torch" and not self._is_linux
        return [
            Need(name, specifier, owner)
            for line in (without_nvidia(row.requires) if is_linux_only else row.requires)
            if ("extra" in line.partition(";")[2]) == bool(extra)
            for name, specifier in self._asked(line, extra)
        ]

    def _asked(self, line: str, extra: str) -> list[tuple[str, str]]:
        """What one line of metadata means here. It is cached: releases share most lines."""
        key = (line, extra)
        if key not in self._lines:
            wanted = _parsed(line)
            applies = wanted is not None and (
                wanted.marker is None
                or wanted.marker.evaluate({**self._environment, "extra": extra})
            )
            self._lines[key] = self._names(wanted) if wanted is not None and applies else []
        return self._lines[key]

    def _names(self, wanted: Requirement) -> list[tuple[str, str]]:
        name = normalised(wanted.name)
        specifier = str(wanted.specifier)
        if wanted.extras and name in self.table:
            extras = sorted(normalised(extra) for extra in wanted.extras)
            return [(f"{name}[{extra}]", specifier) for extra in extras]
        folder = _shared_folder(name)
        shared = [] if folder is None else [(f"folder:{folder}", f"=={name}")]
        return [(name, specifier), *shared]

    def allowed(self, package: str, specifiers: set[str]) -> list[Release]:
        """The releases that pip could choose. pip knows metadata only."""
        return [
            row
            for row in self.releases(package)
            if all(contains(specifier, row.version) for specifier in specifiers)
            and usable(row, self.machine)
        ]


def _shared_folder(package: str) -> str | None:
    """The folder of SHARED_FOLDERS that a package, or a line that requires it, installs into."""
    return next((f for f in SHARED_FOLDERS if package.startswith(f"nvidia-{f}-cu")), None)


def _shortest(version: str) -> str:
    """Trailing zeros do not count: 13.0.3.0 satisfies ==13.0.3."""
    return _ZEROS.sub("", version)


@cache
def _exact(specifier: str) -> str | None:
    """The only version that a specifier allows: "==1.2", or "<=1.2,>=1.2" as in JAX."""
    parts = specifier.split(",")
    versions = {part.lstrip("<>=!~ ") for part in parts}
    operators = {part[: len(part) - len(part.lstrip("<>=!~ "))].strip() for part in parts}
    is_one = len(versions) == 1 and not specifier.endswith("*")
    pinned = is_one and operators in ({"=="}, {"<=", ">="})
    return versions.pop() if pinned else None


@cache
def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except (InvalidRequirement, RecursionError):
        return None


def marker_environment(machine: MachineSpec) -> dict[str, str]:
    """The values of the names in a marker (PEP 508) on a machine."""
    python = machine.python.value if isinstance(machine.python, Known) else _ASSUMED_PYTHON
    platform = machine.platform.value if isinstance(machine.platform, Known) else "linux_x86_64"
    system, _, architecture = platform.partition("_")
    sys_platform, platform_system, os_name = _SYSTEMS[system]
    full = python if python.count(".") > 1 else f"{python}.0"
    return {
        "python_version": ".".join(python.split(".")[:2]),
        "python_full_version": full,
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "os_name": os_name,
        "platform_machine": architecture.upper() if system == "win" else architecture,
        "platform_release": "",
        "platform_version": "",
        "implementation_name": "cpython",
        "implementation_version": full,
        "platform_python_implementation": "CPython",
    }
