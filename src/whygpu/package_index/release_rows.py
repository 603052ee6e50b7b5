"""From published releases to rows of the release table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from whygpu.model.release import Release
from whygpu.package_index.project_page import PublishedRelease, Wheel
from whygpu.package_index.remote_wheel import RemoteWheel
from whygpu.package_index.web import Web


class BuildFacts(NamedTuple):
    """What a wheel says about its own GPU build."""

    cuda: str = ""
    cudnn: str = ""
    architectures: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()
    architectures_from: str = ""
    """Where the architectures come from, when it is not the wheel."""
    unread: str = ""
    """Why the facts above are unknown; empty if they were read."""


BuildReader = Callable[[RemoteWheel, str, tuple[Requirement, ...]], BuildFacts]
"""From a wheel, its release's version, and what it requires."""


CUPY = ("80", "90", "92", *(str(number) for number in (100, 101, 102, *range(110, 118))))
PACKAGES: tuple[str, ...] = (
    "tensorflow",
    "tensorflow-gpu",
    "tensorflow-cpu",
    "tf-keras",
    "keras",
    "jax",
    "jaxlib",
    "jax-cuda11-plugin",
    "jax-cuda12-plugin",
    "jax-cuda12-pjrt",
    "jax-cuda13-plugin",
    "jax-cuda13-pjrt",
    "torch",
    "onnxruntime-gpu",
    *(f"cupy-cuda{release}" for release in (*CUPY, "11x", "12x", "13x")),
    "cuda-toolkit",
    "h5py",
    "ml-dtypes",
    "numpy",
    "protobuf",
)

_PAGE_ONLY = frozenset({"numpy", "protobuf"})
"""Packages that require nothing of the others: their page says all there is to know."""
_SHARED = frozenset({*PACKAGES, "typing-extensions", "flatbuffers", "scipy", "triton"})
_OTHER_EXTRAS = re.compile(
    r"""extra == ["'](ci|minimum-jaxlib|tpu|rocm.*|oneapi|australis|all|dev|doc|test"""
    r"""|jenkins|stylecheck|setup)["']"""
)
"""Extras of developers, and of hardware other than NVIDIA's."""
_TOOLKIT_PARTS = re.compile(r"cu(blas|dart|fft|file|pti|rand|solver|sparse)|nv(cc|jitlink|rtc|tx)")
"""The parts of cuda-toolkit that frameworks ask for."""
_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
_LEGACY_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
_MANYLINUX = re.compile(r"(?:manylinux_(\d+)_(\d+)|(manylinux\d+))_x86_64")


def names_nvidia(package: str) -> bool:
    """Whether a package is one of NVIDIA's own: its page says enough about it."""
    return package.startswith(("nvidia-", "cuda-", "tensorrt"))


def page_row(release: PublishedRelease) -> Release:
    """What the page of the index says about a release: no requirements, and no facts of a build."""
    relevant = _for_linux(release.wheels)
    wheel = _best_wheel(release)
    return Release(
        package=release.package,
        version=str(release.version),
        file=wheel.filename,
        pythons=python_versions(tag for one in relevant for tag in one.tags),
        requires_python=wheel.requires_python,
        platforms=tuple(sorted({tag.platform for one in release.wheels for tag in one.tags})),
        glibc=glibc_floor(tag.platform for one in release.wheels for tag in one.tags),
        cuda="",
        cudnn="",
        architectures=(),
        requires=(),
        unsearched=(),
        free_threaded=python_versions((tag for one in relevant for tag in one.tags), "t"),
    )


def row_of(
    web: Web, release: PublishedRelease, reader_of: Callable[[str], BuildReader | None]
) -> Release:
    """A release, as its page and its best wheel describe it.

    `reader_of` gives the function that reads the GPU build of a package; None if it has none.
    Raises Unreadable, or ValueError if a wheel is not as its readers expect.
    """
    row = page_row(release)
    if release.package in _PAGE_ONLY or (
        names_nvidia(release.package) and release.package != "cuda-toolkit"
    ):
        return row
    archive = RemoteWheel(web, _best_wheel(release).url)
    metadata = archive.metadata()
    requirements = requirements_that_matter(metadata.get_all("Requires-Dist", []))
    if release.package == "cuda-toolkit":
        requirements = toolkit_parts(requirements)
    reader = reader_of(release.package)
    facts = reader(archive, row.version, requirements) if reader else BuildFacts()
    return row._replace(
        file="; architectures from ".join(filter(None, (row.file, facts.architectures_from))),
        requires_python=row.requires_python or metadata.get("Requires-Python", ""),
        requires=tuple(dict.fromkeys(map(str, requirements))),
        cuda=facts.cuda,
        cudnn=facts.cudnn,
        architectures=facts.architectures,
        unsearched=facts.unsearched,
        unread=facts.unread,
    )


def _best_wheel(release: PublishedRelease) -> Wheel:
    return max(_for_linux(release.wheels), key=_preference)


def _for_linux(wheels: tuple[Wheel, ...]) -> tuple[Wheel, ...]:
    """The wheels for Linux on x86_64; all of them where there are none."""
    return tuple(wheel for wheel in wheels if _runs_on_linux(wheel)) or wheels


def _runs_on_linux(wheel: Wheel) -> bool:
    return any(
        tag.platform == "any" or (tag.platform.endswith("_x86_64") and "linux" in tag.platform)
        for tag in wheel.tags
    )


def _preference(wheel: Wheel) -> tuple[bool, bool, tuple[int, int], str]:
    """The newest ordinary Python, on glibc."""
    return (
        not any("musllinux" in tag.platform for tag in wheel.tags),
        not any(tag.abi.endswith("t") for tag in wheel.tags),
        max(_python_of(tag) for tag in wheel.tags),
        wheel.filename,
    )


def _python_of(tag: Tag) -> tuple[int, int]:
    match = re.fullmatch(r"(?:cp|py)(\d)(\d*)", tag.interpreter)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def python_versions(tags: Iterable[Tag], build: Literal["", "t"] = "") -> tuple[str, ...]:
    """Those whose usual or free-threaded (t) build has a wheel of its own.

    Empty where one wheel serves them all, as far as Requires-Python lets it.
    """
    found = set()
    for tag in tags:
        if "musllinux" in tag.platform or tag.abi.endswith("t") != (build == "t"):
            continue
        if tag.abi == "abi3" or tag.interpreter == "py3":
            return ()
        if tag.interpreter.startswith("cp"):
            found.add(_python_of(tag))
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


def glibc_floor(platforms: Iterable[str]) -> str:
    """The oldest glibc that some wheel for x86_64 runs on; empty where none says."""
    floors = []
    for platform in platforms:
        match = _MANYLINUX.fullmatch(platform)
        if match:
            floors.append(_LEGACY_GLIBC.get(match[3]) or f"{match[1]}.{match[2]}")
    return min(floors, key=Version, default="")


def requirements_that_matter(lines: Iterable[str]) -> tuple[Requirement, ...]:
    """On packages of the table, as published; lines that cannot be parsed are left out."""
    found = []
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        requirement.name = canonicalize_name(requirement.name)
        shared = requirement.name in _SHARED or names_nvidia(requirement.name)
        if shared and not _OTHER_EXTRAS.search(line):
            found.append(requirement)
    return tuple(found)


def toolkit_parts(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """What the parts of cuda-toolkit are on Linux; its markers for every machine are long."""
    parts = []
    for requirement in requirements:
        marker = requirement.marker
        for extra in re.findall(r'extra == "([\w-]+)"', str(marker)):
            there = {**_LINUX, "extra": extra}
            if marker and _TOOLKIT_PARTS.fullmatch(extra) and marker.evaluate(there):
                bare = str(requirement).partition(";")[0].strip()
                parts.append(Requirement(f'{bare}; extra == "{extra}"'))
    return tuple(parts)


def nvidia_packages(rows: Iterable[Release]) -> tuple[str, ...]:
    """NVIDIA's packages that the rows require, in alphabetical order."""
    names = {Requirement(line).name for row in rows for line in row.requires}
    return tuple(sorted(name for name in names if names_nvidia(name) and name not in PACKAGES))


def document(rows: Iterable[Release], harvested: str) -> str:
    """The table as JSON, a row on each line, so that changes can be read."""
    ordered = sorted(rows, key=lambda row: (row.package, Version(row.version)))
    lines = ",\n".join(_compact(row) for row in ordered)
    return f'{{"schema": 1, "harvested": "{harvested}", "releases": [\n{lines}\n]}}\n'


def _compact(row: Release) -> str:
    fields: list[Any] = [list(field) if isinstance(field, tuple) else field for field in row]
    for default in reversed(Release._field_defaults.values()):
        if row[len(fields) - 1] != default:
            break
        fields.pop()
    return json.dumps(fields, separators=(",", ":"))
