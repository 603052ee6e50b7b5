"""Why pip, uv or poetry found no build of a package, decided from a log and the tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from whygpu.causes.evidence.builds_on_record import (
    inferred_from_offers,
    platforms_of,
    python_here,
    pythons_supported,
    rows_allowed,
    runs_on,
    torch_release_of,
)
from whygpu.causes.evidence.log_installs import PYPI, Attempt
from whygpu.model.finding import Confidence
from whygpu.model.lazy_regex import late
from whygpu.model.machine_spec import PLATFORMS
from whygpu.model.release import Release
from whygpu.tables.distributions import PROVIDERS, normalised
from whygpu.tables.package_names import other_name
from whygpu.tables.releases import versions_of
from whygpu.tables.torch_indexes import index_exists, index_has, indexes_of
from whygpu.tables.versions import release_numbers

ReasonKind = Literal[
    "renamed",
    "typo",
    "removed",
    "no-extra",
    "python",
    "python-build",
    "wrong-file",
    "no-such-file",
    "no-cuda-there",
    "no-build-there",
    "musl",
    "glibc",
    "old-pip",
    "no-such-index",
    "no-such-build",
    "index-not-asked",
    "no-such-release",
    "undecided",
]
PythonSide = Literal["too-new", "too-old", "other"]


class Reason(NamedTuple):
    """The reason, and the facts that a message about it needs; other fields are empty."""

    kind: ReasonKind
    confidence: Confidence = "certain"
    side: PythonSide = "other"
    """For "python": on which side of the supported versions it is."""
    python: str = ""
    """The Python that was used; empty if only the side is known."""
    inferred: bool = False
    """The Python or the platform follows from the list of releases that pip offers."""
    supported: tuple[str, ...] = ()
    """Python versions with builds, from old to new."""
    python_range: str = ""
    """The range of Python versions that the package declares."""
    platform: str = ""
    """The name of a platform, for people."""
    tag: str = ""
    """The CUDA release that was requested, as PyTorch's indexes name it: cu125."""
    indexes: tuple[str, ...] = ()
    """The indexes that have CUDA builds of the requested release."""
    name: str = ""
    """The right package, the extra, or the oldest pip or glibc that works."""
    releases: tuple[str, str] = ("", "")
    """The first and the last release with the extra; empty if none has it."""


_TORCH_FAMILY = ("torch", "torchvision", "torchaudio")
_CUDA_PACKAGE = late(r"nvidia-|cupy-cuda|jax-cuda|tensorflow-gpu$|onnxruntime-gpu$")
_ALL_KNOWN = ("tensorflow", "tensorflow-gpu", "torch")
"""Packages whose final releases are all in the release table."""
_NO_CUDA_ON_ARM_BEFORE = (2, 4)
"""PyTorch's first CUDA builds for Linux on aarch64 (https://download.pytorch.org/whl/cu124/)."""


def reason_of(attempt: Attempt) -> Reason:
    """The first reason that the log and the tables show."""
    undecided = Reason("undecided", "likely")
    return next((reason for rule in _RULES if (reason := rule(attempt))), undecided)


def _other_name(attempt: Attempt) -> Reason | None:
    known = other_name(attempt.package)
    if known is not None and (attempt.refusal == "renamed" or not attempt.offered):
        return Reason("renamed", name=known.right)
    if attempt.refusal != "none" or attempt.offered or versions_of(attempt.package):
        return None
    near = next((row.name for row in PROVIDERS if _is_typo(attempt.package, row.name)), None)
    return Reason("typo", "likely", name=near) if near else None


def _is_typo(name: str, meant: str) -> bool:
    """One letter too many, too few or wrong, or two letters swapped, in a long name."""
    if len(meant) < 8 or name == meant or abs(len(name) - len(meant)) > 1:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(name, meant, strict=False)) if a != b), len(meant)
    )
    left, right = name[start:], meant[start:]
    return (
        left[1:] in (right, right[1:])
        or left == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )


def _removed(attempt: Attempt) -> Reason | None:
    gone = attempt.package == "tensorflow-gpu" and release_numbers(attempt.version) >= (2, 12)
    return Reason("removed") if gone or attempt.refusal == "removed" else None


def _no_extra(attempt: Attempt) -> Reason | None:
    if attempt.refusal != "extra":
        return None
    extra = normalised(attempt.extras[0])
    mention = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    having = [
        row.version
        for row in versions_of(attempt.package)
        if any(mention.search(_dashed(line)) for line in row.requires)
    ]
    return Reason("no-extra", name=attempt.extras[0], releases=_ends(having))


def _dashed(requirement: str) -> str:
    """Old metadata write the names of extras with underscores."""
    return requirement.replace("_", "-")


def _ends(versions: list[str]) -> tuple[str, str]:
    return (versions[0], versions[-1]) if versions else ("", "")


def _declared_python(attempt: Attempt) -> Reason | None:
    """The installer itself says which Python versions the package requires."""
    if not attempt.needs_python:
        return None
    python, inferred = python_here(attempt)
    rows = rows_allowed(attempt)
    declaring = tuple(row for row in rows if row.requires_python == attempt.needs_python)
    return Reason(
        "python",
        side=_side_of_range(python, attempt.needs_python),
        python=python,
        inferred=inferred,
        supported=pythons_supported(declaring or (rows if attempt.version else ())),
        python_range=attempt.needs_python,
    )


def _side_of_range(python: str, text: str) -> PythonSide:
    mine = release_numbers(python)
    above = re.search(r"<=?\s*(\d[\d.]*)", text)
    below = re.search(r">=?\s*(\d[\d.]*)", text)
    if mine and below and mine < release_numbers(below[1])[:2]:
        return "too-old"
    return "too-new" if mine and above else "other"


def _python_build(attempt: Attempt) -> Reason | None:
    build = attempt.environment.python_build
    rows = rows_allowed(attempt)
    if not build or not any(row.pythons for row in rows):
        return None
    if build == "32-bit" and any("win32" in row.platforms for row in rows):
        return None
    if build == "free-threaded" and any(
        attempt.environment.python in row.free_threaded for row in rows
    ):
        return None
    sure = build != "free-threaded" or attempt.refusal == "python-tag"
    return Reason(
        "python-build",
        "certain" if sure else "likely",
        name=build,
        supported=pythons_supported(rows),
    )


_FILE = late(
    r"[\w.]{1,80}-[\w.+]{1,60}(?:-\d\w{0,20})?-(?P<python>[\w.]{1,40})-(?P<abi>[\w.]{1,40})"
    r"-(?P<platform>[\w.]{1,120})"
)
_FILE_SYSTEMS = {"win": "windows", "macosx": "macos", "manylinux": "linux", "linux": "linux"}


def _wrong_file(attempt: Attempt) -> Reason | None:
    """pip was given a file, and its name says what it is for."""
    if attempt.refusal == "no-file":
        return Reason("no-such-file")
    if attempt.refusal != "file":
        return None
    match = _FILE.fullmatch(attempt.file)
    if match is None:
        return Reason("wrong-file", "likely")
    platform, environment = match["platform"], attempt.environment
    if platform == "win_x86_64":
        return Reason("no-such-file", name="win_amd64")
    number = re.match(r"cp(\d)(\d+)", match["python"])
    python = f"{number[1]}.{number[2]}" if number else ""
    system = _FILE_SYSTEMS.get(re.match(r"[a-z]*", platform)[0], "")  # type: ignore[index]
    named = _platform_name(platform)
    if python and environment.python and environment.python != python:
        side: PythonSide = (
            "too-new"
            if release_numbers(environment.python) > release_numbers(python)
            else "too-old"
        )
        return Reason("python", side=side, python=environment.python, supported=(python,))
    if system and environment.system and system != environment.system:
        return Reason("wrong-file", supported=_some(python), platform=named)
    needed = _pip_for((platform,))
    if environment.pip and release_numbers(environment.pip) < release_numbers(needed):
        return Reason("old-pip", name=needed)
    return Reason("wrong-file", "likely", supported=_some(python), platform=named)


def _some(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


def _platform_name(tag: str) -> str:
    """The name of the platform that a wheel's tag is for; empty for other platforms."""
    first = tag.partition(".")[0]
    system = re.sub(r"(?:many)?linux[\d_]*", "linux_", re.sub(r"macosx_\d+_\d+_", "macosx_", first))
    return PLATFORMS.get(system, "")


def _no_cuda_there(attempt: Attempt) -> Reason | None:
    environment, release = attempt.environment, torch_release_of(attempt)
    if not _wants_cuda(attempt):
        return None
    if environment.system == "macos" and not _was_on_macos(attempt):
        return Reason("no-cuda-there", platform="macOS")
    on_arm = environment.system == "linux" and environment.machine == "aarch64"
    if on_arm and attempt.local and release and release < _NO_CUDA_ON_ARM_BEFORE:
        return Reason("no-cuda-there", platform=PLATFORMS["linux_aarch64"])
    return None


def _was_on_macos(attempt: Attempt) -> bool:
    """tensorflow-gpu 1.1 was the last one with a build for macOS."""
    rows = rows_allowed(attempt) if attempt.package == "tensorflow-gpu" and attempt.version else ()
    return any(row.has_wheel_for("macosx_x86_64") for row in rows)


def _wants_cuda(attempt: Attempt) -> bool:
    return bool(
        attempt.local.startswith("cu")
        or (attempt.local and attempt.package in _TORCH_FAMILY)
        or any("cuda" in extra or extra == "gpu" for extra in attempt.extras)
        or _CUDA_PACKAGE.match(attempt.package)
        or _index_tag(attempt)
    )


_INDEX_TAG = late(r"download\.pytorch\.org/whl/(?:nightly/|test/)?(cu\d{2,4})$")


def _index_tag(attempt: Attempt) -> str:
    """The only CUDA index of PyTorch that was searched: cu118."""
    tags = {match[1] for url in attempt.indexes if (match := _INDEX_TAG.search(url))}
    return tags.pop() if len(tags) == 1 else ""


def _cuda_build(attempt: Attempt) -> Reason | None:
    """PyTorch has no builds for the requested CUDA, or none of the requested release."""
    if attempt.package not in _TORCH_FAMILY:
        return None
    nightly = any("/whl/nightly/" in url or "/whl/test/" in url for url in attempt.indexes)
    release = torch_release_of(attempt)
    indexes = indexes_of(release) if release else ()
    # PyPI has every release as well, so another index does not explain that nothing was found.
    besides = nightly or (PYPI in attempt.indexes and not attempt.local)
    searched = "" if besides else _index_tag(attempt)
    for tag, kind in ((attempt.local, "no-such-build"), (searched, "no-such-index")):
        if re.fullmatch(r"cu\d{2,4}", tag) and index_exists(tag) is False:
            return Reason(kind, tag=tag, indexes=indexes)  # type: ignore[arg-type]
    tag = attempt.local if attempt.local.startswith("cu") else searched
    if tag and release and index_has(tag, release) is False:
        return Reason("no-such-build", tag=tag, indexes=indexes)
    return None


def _python(attempt: Attempt) -> Reason | None:
    rows = rows_allowed(attempt)
    python, inferred = python_here(attempt)
    if not python or not rows or any(runs_on(row, python) for row in rows):
        return None
    supported = pythons_supported(rows)
    side = _side(python, supported)
    if side != "too-new" and not attempt.version and attempt.package not in _ALL_KNOWN:
        # Older releases, which are not on record, may support it.
        return None
    # torchvision and torchaudio are built for the Python versions of their torch.
    sure = rows[0].package == attempt.package
    return Reason(
        "python",
        "certain" if sure else "likely",
        side=side,
        python=python,
        inferred=inferred,
        supported=supported,
    )


def _side(python: str, supported: tuple[str, ...]) -> PythonSide:
    mine = release_numbers(python)
    if supported and mine > release_numbers(supported[-1]):
        return "too-new"
    return "too-old" if supported and mine < release_numbers(supported[0]) else "other"


def _platform(attempt: Attempt) -> Reason | None:
    rows, environment = rows_allowed(attempt), attempt.environment
    if not rows:
        return None
    tags = [tag for row in rows for tag in row.platforms]
    if environment.musl and not any(tag == "any" or "musllinux" in tag for tag in tags):
        return Reason("musl")
    if not environment.system and _only_placeholders(attempt):
        return Reason("no-build-there", "likely", platform="Windows or macOS")
    _, inferred = inferred_from_offers(attempt)
    here = inferred or (platforms_of(environment) if environment.system else ())
    if here and not any(row.has_wheel_for(platform) for row in rows for platform in here):
        return _no_build_on(attempt, here)
    floors = [row.glibc for row in rows if row.glibc]
    needed = min(floors, key=release_numbers, default="")
    if environment.glibc and release_numbers(environment.glibc) < release_numbers(needed):
        return Reason("glibc", name=needed)
    return None


def _no_build_on(attempt: Attempt, here: tuple[str, ...]) -> Reason | None:
    """The releases on PyPI have no build for any of these platforms."""
    release = torch_release_of(attempt)
    indexes: tuple[str, ...] = ()
    if attempt.package in _TORCH_FAMILY and release and here == ("win_amd64",):
        # PyPI had no builds of PyTorch for Windows before 1.7, but PyTorch's indexes had them.
        if attempt.local or attempt.indexes:
            return None
        indexes = indexes_of(release)
    known = reversed(versions_of(attempt.package))
    return Reason(
        "no-build-there",
        platform=PLATFORMS[here[0]] if len(here) == 1 else _SYSTEM_NAMES[here[0].partition("_")[0]],
        inferred=not attempt.environment.system,
        name=next((row.version for row in known if _on_all(row, here)), ""),
        tag=indexes[-1] if indexes else "",
        indexes=indexes,
    )


def _only_placeholders(attempt: Attempt) -> bool:
    """NVIDIA's names on PyPI have an empty first release, which any platform is offered."""
    offered = attempt.offered or ()
    nvidia = attempt.package.startswith("nvidia-") and bool(offered)
    return nvidia and all("dev" in version for version in offered)


def _on_all(row: Release, platforms: tuple[str, ...]) -> bool:
    return all(row.has_wheel_for(platform) for platform in platforms)


_SYSTEM_NAMES = {"linux": "Linux", "win": "Windows", "macosx": "macOS"}


_PIPS = (("manylinux_", "20.3"), ("manylinux2014", "19.3"), ("manylinux2010", "19.0"))
"""The first pip that accepts a kind of wheel (https://github.com/pypa/manylinux)."""


def _pip_for(tags: tuple[str, ...]) -> str:
    """The oldest pip that accepts one of these Linux wheels."""
    needed = [
        next((pip for prefix, pip in _PIPS if tag.startswith(prefix)), "0")
        for group in tags
        for tag in group.split(".")
        if "linux" in tag
    ]
    return min(needed, key=release_numbers, default="0")


def _old_pip(attempt: Attempt) -> Reason | None:
    rows, environment = rows_allowed(attempt), attempt.environment
    if not rows or not environment.pip or environment.system in ("windows", "macos"):
        return None
    needed = min((_pip_for(row.platforms) for row in rows), key=release_numbers)
    if release_numbers(environment.pip) >= release_numbers(needed):
        return None
    return Reason("old-pip", "certain" if environment.system else "likely", name=needed)


_CUDA_PAGES = (
    "download.pytorch.org",
    "jax_cuda_releases",
    "pypi.nvidia.com",
    "pypi.ngc.nvidia.com",
)


def _index_not_asked(attempt: Attempt) -> Reason | None:
    """The CUDA build is on an index that the log does not show as searched."""
    if not attempt.local.startswith("cu") or attempt.offered == ():
        return None
    asked = any(page in url for url in attempt.indexes for page in _CUDA_PAGES)
    asked = asked or any("+cu" in version for version in attempt.offered or ())
    # An index of PyTorch has the builds for one CUDA release only.
    if asked and _index_tag(attempt) in ("", attempt.local):
        return None
    shown = bool(attempt.offered or attempt.indexes)
    release = torch_release_of(attempt)
    return Reason(
        "index-not-asked",
        "certain" if shown else "likely",
        tag=attempt.local,
        indexes=indexes_of(release) if release else (),
    )


def _all_on_one_side(attempt: Attempt) -> Reason | None:
    """pip offers only newer releases, or only older ones, than the one that was requested."""
    bound = re.search(r"(?:==|>=|~=|>)\s*(\d[\d.]*)", attempt.specifier)
    offered = [release_numbers(version) for version in attempt.offered or ()]
    if bound is None or not offered:
        return None
    wanted = release_numbers(bound[1])
    newest = max((release_numbers(r.version) for r in versions_of(attempt.package)), default=())
    if min(offered) > wanted and attempt.version:
        side: PythonSide = "too-new"
    elif max(offered) < wanted <= newest:
        side = "too-old"
    else:
        return None
    rows = rows_allowed(attempt) if attempt.version else ()
    return Reason("python", "likely", side=side, supported=pythons_supported(rows))


def _stated_tag(attempt: Attempt) -> Reason | None:
    """The installer says which part of the wheels' names does not match, and the tables do not."""
    if attempt.refusal == "python-tag":
        return Reason(
            "python",
            python=attempt.environment.python,
            supported=pythons_supported(rows_allowed(attempt)),
        )
    if attempt.refusal == "platform":
        return Reason("no-build-there")
    return None


def _missing_release(attempt: Attempt) -> Reason | None:
    version, rows = attempt.version, versions_of(attempt.package)
    if (
        attempt.package not in _ALL_KNOWN
        or not re.fullmatch(r"[\d.]+", version)
        or rows_allowed(attempt)
    ):
        return None
    wanted = release_numbers(version)
    if wanted < release_numbers(rows[0].version):
        return None
    if wanted > release_numbers(rows[-1].version):
        return Reason("no-such-release", "likely", name=rows[-1].version)
    return Reason("no-such-release")


_RULES: tuple[Callable[[Attempt], Reason | None], ...] = (
    _other_name,
    _removed,
    _no_extra,
    _declared_python,
    _python_build,
    _wrong_file,
    _no_cuda_there,
    _missing_release,
    _cuda_build,
    _python,
    _platform,
    _old_pip,
    _index_not_asked,
    _stated_tag,
    _all_on_one_side,
)
