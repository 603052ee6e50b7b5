"""Why conda, mamba or pixi could not solve an environment, decided from a log."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from whygpu.causes.evidence.log_installs import Attempt
from whygpu.model.finding import Confidence
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.tables.versions import release_numbers

CondaKind = Literal[
    "no-driver",
    "driver-too-old",
    "no-driver-or-too-old",
    "cuda-not-declared",
    "no-cuda-on-macos",
    "glibc",
    "other-system",
    "channel-ended",
    "not-in-channels",
    "python",
    "conflict",
    "undecided",
]


class CondaReason(NamedTuple):
    """The reason, and the facts that a message about it needs; other fields are empty."""

    kind: CondaKind
    confidence: Confidence = "certain"
    needs: str = ""
    """The version range that a package needs: >=11.8."""
    package: str = ""
    """The package that needs it, or that is missing."""
    other: str = ""
    """What it conflicts with, or the system that it is for."""
    has: str = ""
    """The version that the machine has."""

    @property
    def cuda(self) -> str:
        """The oldest CUDA release that the package can use: 11.2 of >=11.2 or cuda112py310."""
        bound = re.search(r"\d+(?:\.\d+)?", self.needs)
        build = re.search(r"cuda_?(\d\d)\.?(\d)", self.package)
        return bound[0] if bound else f"{build[1]}.{build[2]}" if build else "12.0"


_CUDA = late(
    r"(?:nothing provides|requires?|require|would require)?\s{0,40}[\u2500\u2514\u251c\u2502| -]{0,40}"
    r"__cuda(?P<range>[ \[][^\n,]{0,40}?)?(?: needed by (?P<by>\S{2,80})"
    r"| ?, which is missing on the system|,? ?(?P<undeclared>for which no candidates were found))"
)
_UNMATCHED = late(r"Virtual package '(?P<spec>__cuda[^'\n]{0,40})' does not match any")
_CLASSIC = late(r"feature:[^\n]{0,40}?__cuda==(?P<has>[\d.]{1,8})")
_CLASSIC_NEED = late(r"-> __cuda\[version='(?P<range>[^'\n]{1,60})'\]")
_INSTALLED = late(r"Your installed version is: (?P<has>[\d.]{1,8}|not available)")
_GLIBC = late(
    r"__glibc(?P<range>[ \[][^\n,]{0,20}(?:,<[\w.]{1,8})?)[^\n]{0,20}"
    r"(?:which is missing on the system|needed by (?P<by>\S{2,80})|no candidates were found)"
)
_SYSTEM = late(
    r"__(?P<system>win|osx|linux|unix)\b[^\n]{0,30}"
    r"(?:which is missing on the system|needed by|no candidates were found)"
)
_SYSTEMS = {"win": "Windows", "osx": "macOS", "linux": "Linux", "unix": "Linux or macOS"}
_MISSING = late(
    r"(?:PackagesNotFoundError|ResolvePackageNotFound)[^\n]{0,160}\n(?:[ \t]{0,8}\n){0,2}"
    r"(?P<list>(?:[ \t]{1,8}- [^\n]{1,120}\n?){1,40})"
    r"|[\u2500-] (?P<typo>[a-z][\w.-]{1,60}[^\n,;]{0,60}?) does not exist \(perhaps a typo"
    r"|nothing provides requested (?P<requested>[^\n]{2,80})"
)
_CONFLICT = late(
    r"- (?P<by>[a-z][\w.-]{1,60}[^\n]{0,40}?) -> (?P<needs>[a-z][\w.-]{1,60}[^\n]{0,60})"
    r"|package (?P<package>[a-z][\w.-]{1,90}) requires (?P<required>[a-z][^\n]{1,60}?), but none of "
    r"the providers"
    r"|[\u2500] (?P<tree>[a-z][^\n]{1,60}?) (?:is not installable because it|would) requires?\n"
    r"[^\na-z]{0,20}(?P<wants>[a-z][^\n]{1,60}?)(?: ?, which|;|\n|$)"
)
_LAST_ON_PYTORCH_CHANNEL = (2, 5, 1)
"""https://github.com/pytorch/pytorch/issues/138506"""
_PYTORCH_CHANNEL = late(r"conda\.anaconda\.org/pytorch\b|-c pytorch\b")


def conda_reason(log: Log, attempt: Attempt) -> CondaReason:
    """The first reason that the log shows."""
    return (
        _driver(log, attempt)
        or _glibc(log)
        or _other_system(log)
        or _missing(log)
        or _conflict(log)
        or CondaReason("undecided", "likely", package=attempt.package)
    )


def _driver(log: Log, attempt: Attempt) -> CondaReason | None:
    """`__cuda` stands for the driver: the newest CUDA release that it supports."""
    classic, match = log.first(_CLASSIC), log.first(_CUDA)
    unmatched = log.first(_UNMATCHED)
    if classic is None and match is None and unmatched is None:
        return None
    if attempt.environment.system == "macos":
        return CondaReason("no-cuda-on-macos")
    if classic is not None:
        # The older solver also lists the driver if it is not the problem.
        need, has = log.first(_CLASSIC_NEED), classic.groups["has"] or ""
        needs = (need.groups["range"] or "") if need else ""
        bounds = [release_numbers(bound) for bound in re.findall(r"\d[\d.]*", needs)]
        too_old = bool(bounds) and release_numbers(has) < min(bounds)
        return CondaReason("driver-too-old", needs=needs, has=has) if too_old else None
    if unmatched is not None:
        needs = (unmatched.groups["spec"] or "").removeprefix("__cuda").strip(" =*")
        return CondaReason("no-driver-or-too-old" if needs else "no-driver", needs=needs)
    assert match is not None
    needs = (match.groups["range"] or "").strip(" *[]")
    if match.groups["undeclared"]:
        return CondaReason("cuda-not-declared", needs=needs)
    installed = log.first(_INSTALLED)
    has = (installed.groups["has"] or "") if installed else ""
    if has and has != "not available":
        return CondaReason("driver-too-old", needs=needs, has=has)
    kind: CondaKind = "no-driver-or-too-old" if needs and not has else "no-driver"
    return CondaReason(kind, needs=needs, package=match.groups["by"] or attempt.package)


def _glibc(log: Log) -> CondaReason | None:
    match = log.first(_GLIBC)
    if match is None:
        return None
    return CondaReason("glibc", needs=(match.groups["range"] or "").strip(" *[]"))


def _other_system(log: Log) -> CondaReason | None:
    match = log.first(_SYSTEM)
    if match is None:
        return None
    return CondaReason("other-system", other=_SYSTEMS[match.groups["system"] or ""])


def _missing(log: Log) -> CondaReason | None:
    match = log.first(_MISSING)
    if match is None:
        return None
    listed = [line.strip(" -\t") for line in (match.groups["list"] or "").splitlines()]
    names = [name for name in listed if name] or [
        (match.groups["typo"] or match.groups["requested"] or "").strip()
    ]
    package = names[0]
    # name=version=build: builds have other names on every system.
    exported = sum(1 for name in names if re.fullmatch(r"[\w.-]+=[\w.]+=\w+", name))
    if exported:
        return CondaReason("other-system", "likely", package=package)
    name, version = _split(package)
    ended = name in ("pytorch", "pytorch-cuda") and log.says(_PYTORCH_CHANNEL)
    if ended and name == "pytorch" and release_numbers(version) > _LAST_ON_PYTORCH_CHANNEL:
        return CondaReason("channel-ended", package=package)
    if name == "cudatoolkit" and release_numbers(version) >= (12,):
        return CondaReason("channel-ended", package=package)
    return CondaReason("not-in-channels", package=package)


def _split(spec: str) -> tuple[str, str]:
    match = re.match(r"(?:[\w.-]+::)?([\w.-]+?)\s*(?:[=<>~ ]+([\d.]+).*)?$", spec)
    return (match[1], match[2] or "") if match else (spec, "")


def _conflict(log: Log) -> CondaReason | None:
    match = log.first(_CONFLICT)
    if match is None:
        return None
    groups = match.groups
    by = (groups["by"] or groups["package"] or groups["tree"] or "").strip()
    needs = (groups["needs"] or groups["required"] or groups["wants"] or "").strip()
    if _split(needs)[0] == "python":
        return CondaReason("python", "likely", package=by, needs=needs)
    # Only the older solver lists the other requirement by its name.
    other = _other_spec(log, needs)
    return CondaReason(
        "conflict", "certain" if other else "likely", package=by, needs=needs, other=other
    )


def _other_spec(log: Log, needs: str) -> str:
    name = re.escape(_split(needs)[0])
    listed = re.search(rf"^\s{{0,8}}- ({name}(?![\w.-])[^\n]{{0,40}})$", log.text, re.MULTILINE)
    return listed[1].strip() if listed else ""
