"""Which build of a framework a requirement of a file installs on a machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier

from whygpu.model.install_plan import Candidate, Wish
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.release import Release
from whygpu.model.requirement_file import Ability, PinnedRequirement, ProblemKind
from whygpu.planner.candidates import (
    Table,
    cupy_build,
    jax_builds,
    on_mac,
    onnxruntime_build,
    tensorflow_build,
    torch_build,
)
from whygpu.planner.constraints import usable, wheel_problem
from whygpu.planner.wishes import asks_for_newer, contains, specifier_set
from whygpu.tables.torch_indexes import index_has
from whygpu.tables.versions import release_numbers

_TORCH_INDEX = re.compile(
    r"/(?:whl|pytorch-wheels)/(nightly/|test/)?(cpu|cu\d{2,3}|rocm[\d.]+|xpu)\b"
)
"""PyTorch's own indexes, and mirrors of them."""
_DEFAULT_INDEX = re.compile(
    r"^https?://(?:pypi\.org|pypi\.python\.org|files\.pythonhosted\.org"
    r"|pypi\.tuna\.tsinghua\.edu\.cn|mirrors\.aliyun\.com|pypi\.mirrors\.ustc\.edu\.cn"
    r"|mirrors\.cloud\.tencent\.com|pypi\.doubanio\.com|pypi\.douban\.com)/"
)
"""PyPI, and public copies of it."""
_LOCAL = re.compile(r"===?\s*([\w.]+)\+([\w.]+)")
LIMITED_SINCE = (1, 7)
"""From this PyTorch on it is on record which torchvision and torchaudio belong to it."""
_JAX_CUDA = re.compile(r"cuda(\d*)(?:-(pip|local|cudnn\d+))?")
_JAX_PLUGIN = re.compile(r"jax-cuda(\d+)-plugin")


class Problem(NamedTuple):
    """Why a requirement cannot use the GPU, or why that is unknown."""

    ability: Ability
    kind: ProblemKind | None
    reason: str


class FileContext(NamedTuple):
    """What a build depends on besides the requirement itself."""

    machine: MachineSpec
    table: Table
    ranges: Mapping[str, str]
    """Every package that the file names, with its range."""
    torch_limit: str = ""
    """The range of PyTorch that other packages of the file allow; empty if they allow every one."""
    parts: Mapping[str, str] = {}
    """The packages that only an optional part of the project installs, with that part."""

    def range_of(self, requirement: PinnedRequirement) -> str:
        """The releases of a requirement that can be installed with the rest of the file."""
        plain = public_range(requirement.specifier)
        if requirement.name != "torch" or not self.torch_limit:
            return plain
        rows = self.table.versions("torch")
        recent = [row.version for row in rows if release_numbers(row.version) >= LIMITED_SINCE]
        if not any(contains(plain, version) for version in recent):
            return plain
        return ",".join(filter(None, (plain, self.torch_limit)))


class TorchSource(NamedTuple):
    tag: str
    """The build that an index has: cpu, cu126, rocm6.2; empty for the default index."""
    unknown: str = ""
    """Why the build is unknown; empty if it is known."""


def public_range(specifier: str) -> str:
    """The range without the local part of a version: ==2.1.0 for ==2.1.0+cpu."""
    match = _LOCAL.fullmatch(specifier)
    return f"=={match[1]}" if match else specifier


def is_torch_index(url: str) -> bool:
    return _TORCH_INDEX.search(url) is not None


def build_of(requirement: PinnedRequirement, context: FileContext) -> Candidate | Problem:
    """The build that pip installs for a requirement on a framework."""
    try:
        specifier_set(public_range(requirement.specifier))
    except InvalidSpecifier:
        reason = f"was not checked: the range {requirement.specifier!r} was not understood"
        return Problem("unknown", None, reason)
    found = _FINDERS.get(requirement.name, _cupy)(requirement, context)
    platform = context.machine.platform_name
    if isinstance(found, Problem) or not platform.startswith("macosx") or found.uses == "metal":
        return found
    return on_mac(found, platform)


def _chosen(
    package: str, requirement: PinnedRequirement, context: FileContext
) -> Release | Problem:
    """The release that pip chooses: the newest in the range with a wheel for the machine."""
    rows = context.table.versions(package)
    in_file = context.range_of(requirement)
    allowed = [row for row in reversed(rows) if contains(in_file, row.version)]
    if not allowed:
        specifier = public_range(requirement.specifier)
        if in_file != specifier and any(contains(specifier, row.version) for row in rows):
            reason = (
                f"cannot be installed: torchvision or torchaudio needs torch{context.torch_limit}"
            )
            return Problem("cannot", "conflict", reason)
        return _not_in_table(package, specifier, rows, context.table)
    found = next((row for row in allowed if usable(row, context.machine)), None)
    return found if found is not None else _no_wheel(allowed[0], context)


def _not_in_table(package: str, specifier: str, rows: Sequence[Release], table: Table) -> Problem:
    if rows and asks_for_newer(Wish(package, specifier), rows[-1].version):
        return Problem("unknown", None, f"was not checked: it is newer than {table.name}")
    return Problem("unknown", None, f"was not checked: {table.name} has no release {specifier}")


def _no_wheel(row: Release, context: FileContext) -> Problem:
    """Why the newest release of the range cannot be installed."""
    reason = wheel_problem(row, context.machine)
    return Problem("cannot", "no-release-fits", f"{row.version} {reason}")


def other_index(requirement: PinnedRequirement) -> str:
    """The index that a requirement is taken from instead of PyPI; mostly empty."""
    return next(
        (
            source.url
            for source in requirement.sources
            if source.role in ("index", "explicit") and not _DEFAULT_INDEX.match(source.url)
        ),
        "",
    )


def _tensorflow(requirement: PinnedRequirement, context: FileContext) -> Candidate | Problem:
    if other := other_index(requirement):
        return Problem("unknown", None, f"was not checked: what {other} has is not on record")
    if requirement.name == "tensorflow-gpu" and contains(requirement.specifier, "2.12.0"):
        return Problem(
            "cannot",
            "removed",
            "was removed: since 2.12 it only fails to install, and tensorflow has the GPU support",
        )
    row = _chosen(requirement.name, requirement, context)
    return row if isinstance(row, Problem) else tensorflow_build(row)


def torch_source(requirement: PinnedRequirement) -> TorchSource:
    """Where a requirement on PyTorch comes from, which decides the build."""
    local = _LOCAL.fullmatch(requirement.specifier)
    if local is not None:
        return TorchSource(local[2])
    for source in requirement.sources:
        found = _TORCH_INDEX.search(source.url)
        if found is not None:
            # Its builds have a local version (2.1.0+cu118), which precedes the same release
            # without one on the default index.
            return TorchSource(found[2], "it is a nightly or test build" if found[1] else "")
    other = other_index(requirement)
    return TorchSource("", f"which of its builds {other} has is not on record" if other else "")


def _torch(requirement: PinnedRequirement, context: FileContext) -> Candidate | Problem:
    source = torch_source(requirement)
    platform = context.machine.platform_name
    is_mac = platform.startswith("macosx")
    if source.tag == "cpu" and not is_mac:
        return Problem("cannot", "cpu-build", "is the build for the CPU")
    if source.tag.startswith(("rocm", "xpu")):
        return Problem("cannot", "other-gpus", f"is the build for {source.tag}, not for CUDA")
    if source.unknown:
        return Problem("unknown", None, f"was not checked: {source.unknown}")
    if not source.tag or is_mac:
        # A Mac has one build, whatever the index is called.
        row = _chosen("torch", requirement, context)
        return row if isinstance(row, Problem) else torch_build(row, platform)
    if not source.tag.startswith("cu"):
        reason = f"was not checked: the build +{source.tag} is not on record"
        return Problem("unknown", None, reason)
    found = _on_torch_index(requirement, source.tag, context)
    replaces = any(each.role in ("index", "explicit") for each in requirement.sources)
    if replaces or "+" in requirement.specifier or _is_unknown(found):
        return found
    # --extra-index-url adds to PyPI, and pip takes the newest release of both. Of the same release
    # it takes the build with a local version.
    row = _chosen("torch", requirement, context)
    if isinstance(row, Problem):
        return found
    default = release_numbers(row.version)
    if isinstance(found, Candidate) and release_numbers(found.version) >= default:
        return found
    return torch_build(row, platform)


def _is_unknown(found: Candidate | Problem) -> bool:
    return isinstance(found, Problem) and found.ability == "unknown"


def _on_torch_index(
    requirement: PinnedRequirement, tag: str, context: FileContext
) -> Candidate | Problem:
    """The newest release in the range that has a build for the machine on the index."""
    specifier = public_range(requirement.specifier)
    limited = context.range_of(requirement)
    rows = [r for r in reversed(context.table.versions("torch")) if contains(limited, r.version)]
    if not rows:
        return _not_in_table("torch", specifier, context.table.versions("torch"), context.table)
    has = [index_has(tag, _minor(row.version)) for row in rows]
    platform = context.machine.platform_name
    builds = [torch_build(r, platform, tag) for r, there in zip(rows, has, strict=True) if there]
    for build in builds:
        if all(usable(part, context.machine) for part in build.parts):
            return build
    if builds:
        return _no_wheel(builds[0].parts[0], context)
    if None in has:
        return Problem("unknown", None, f"was not checked: its build on {tag} is not on record")
    wanted = f"build {specifier}".strip()
    return Problem("cannot", "no-release-fits", f"has no {wanted} on the index {tag}")


def _minor(version: str) -> tuple[int, int]:
    major, minor = (*release_numbers(version), 0)[:2]
    return major, minor


def _jax(requirement: PinnedRequirement, context: FileContext) -> Candidate | Problem:
    row = _chosen("jax", requirement, context)
    if isinstance(row, Problem):
        return row
    builds = list(jax_builds(row, context.table))
    if context.machine.platform_name.startswith("macosx"):
        return builds[0]
    extras = [match for extra in requirement.extras if (match := _JAX_CUDA.fullmatch(extra))]
    plugins = [match for name in context.ranges if (match := _JAX_PLUGIN.fullmatch(name))]
    if not extras and not plugins:
        return Problem("cannot", "cpu-build", "installs JAX without its plug-in for CUDA")
    if extras and not plugins and not _has_extra(row, extras[0][0]):
        reason = (
            f"installs JAX without its plug-in for CUDA: jax {row.version} has no extra "
            f"{extras[0][0]}, and pip only warns of that"
        )
        return Problem("cannot", "cpu-build", reason)
    if extras and extras[0][2] == "local":
        reason = "uses the CUDA libraries of the machine, which were not checked"
        return Problem("unknown", None, reason)
    wanted = f"cuda{(plugins or extras)[0][1]}"
    found = next((build for build in builds if build.extra == wanted), None)
    if found is None:
        reason = f"was not checked: {row.version} has no build for {wanted} on record"
        return Problem("unknown", None, reason)
    return found


def _has_extra(row: Release, extra: str) -> bool:
    return any(f'extra == "{extra}"' in text for text in row.requires)


def _onnxruntime(requirement: PinnedRequirement, context: FileContext) -> Candidate | Problem:
    row = _chosen("onnxruntime-gpu", requirement, context)
    return row if isinstance(row, Problem) else onnxruntime_build(row)


def _cupy(requirement: PinnedRequirement, context: FileContext) -> Candidate | Problem:
    row = _chosen(requirement.name, requirement, context)
    return row if isinstance(row, Problem) else cupy_build(row)


_FINDERS: dict[str, Callable[[PinnedRequirement, FileContext], Candidate | Problem]] = {
    "tensorflow": _tensorflow,
    "tensorflow-gpu": _tensorflow,
    "torch": _torch,
    "jax": _jax,
    "onnxruntime-gpu": _onnxruntime,
}
