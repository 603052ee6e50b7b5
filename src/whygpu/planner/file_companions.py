"""Packages of a file that belong to one release of PyTorch each: torchvision and torchaudio.

Every release of them requires exactly one release of PyTorch. So their ranges limit which PyTorch
pip installs, and another PyTorch needs other releases of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.derived import and_list
from whygpu.model.requirement_file import PinnedRequirement
from whygpu.planner.candidates import Table
from whygpu.planner.file_builds import LIMITED_SINCE, public_range
from whygpu.planner.wishes import contains
from whygpu.tables.torch_extensions import companion_release
from whygpu.tables.versions import release_numbers

COMPANIONS = ("torchvision", "torchaudio")
_PATCHES = range(8)
"""No minor release of them has had more patch releases."""


def with_implied_torch(requirements: Sequence[PinnedRequirement]) -> list[PinnedRequirement]:
    """The requirements, and PyTorch itself if only its companions are named, which require it."""
    named = [each for each in requirements if each.manager == "pip"]
    companions = [each for each in named if each.name in COMPANIONS]
    if not companions or any(each.name == "torch" for each in named):
        return list(requirements)
    first = companions[0]
    if "+" in first.specifier:
        # That build is judged by itself.
        return list(requirements)
    implied = first._replace(name="torch", extras=(), specifier="", required_by=first.name)
    return [*requirements, implied]


def torch_limit(requirements: Sequence[PinnedRequirement], table: Table) -> str:
    """The range of PyTorch that the companions in a file allow; empty if they allow every one."""
    rows = table.versions("torch")
    numbers = (release_numbers(row.version)[:2] for row in rows)
    minors = dict.fromkeys(each for each in numbers if each >= LIMITED_SINCE)
    allowed = [minor for minor in minors if all(_goes(each, minor) for each in _of(requirements))]
    if not allowed or len(allowed) == len(minors):
        return ""
    first, last = min(allowed), max(allowed)
    return f">={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"


def unfit_companions(requirements: Sequence[PinnedRequirement], torch: str) -> str:
    """What has to change with PyTorch, as a sentence; empty if nothing has to."""
    minor = release_numbers(torch)[:2]
    unfit = [each for each in _of(requirements) if not _goes(each, minor)]
    if not unfit:
        return ""
    wanted = dict.fromkeys(
        f"{each.name}=={companion_release(each.name, torch)}.*"
        for each in unfit
        if companion_release(each.name, torch)
    )
    old = and_list(list(dict.fromkeys(f"{each.name}{each.specifier}" for each in unfit)))
    verb = "belongs" if len(unfit) == 1 else "belong"
    instead = f": write {and_list(list(wanted))}" if wanted else ""
    return f"{old} {verb} to another PyTorch{instead}."


def _of(requirements: Sequence[PinnedRequirement]) -> Iterator[PinnedRequirement]:
    for each in requirements:
        is_taken = each.name in COMPANIONS and each.manager == "pip" and not each.is_optional
        if is_taken and each.specifier:
            yield each


def _goes(companion: PinnedRequirement, torch: tuple[int, ...]) -> bool:
    """Whether its range has a release for this minor release of PyTorch."""
    release = companion_release(companion.name, ".".join(map(str, torch)))
    if not release:
        return False
    try:
        plain = public_range(companion.specifier)
        return any(contains(plain, f"{release}.{patch}") for patch in _PATCHES)
    except ValueError:
        # A range that was not understood limits nothing.
        return True
