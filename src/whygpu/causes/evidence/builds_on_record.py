"""The releases on record that a requirement allows, and the Pythons and platforms of their builds."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_installs import Attempt, Environment
from whygpu.model.machine_spec import PLATFORMS
from whygpu.model.release import Release
from whygpu.tables.python_releases import RELEASES as PYTHONS
from whygpu.tables.releases import versions_of
from whygpu.tables.torch_indexes import torch_release
from whygpu.tables.versions import release_numbers


def torch_release_of(attempt: Attempt) -> tuple[int, int] | None:
    return torch_release(attempt.package, attempt.version) if attempt.version else None


def rows_allowed(attempt: Attempt) -> tuple[Release, ...]:
    """The releases on record that the requirement allows."""
    if attempt.package in ("torchvision", "torchaudio"):
        release = torch_release_of(attempt)
        return tuple(
            row for row in versions_of("torch") if release_numbers(row.version)[:2] == release
        )
    rows = versions_of(attempt.package)
    if attempt.version:
        wanted = _trimmed(release_numbers(attempt.version))
        return tuple(row for row in rows if _trimmed(release_numbers(row.version)) == wanted)
    return tuple(_allowed(rows, attempt.specifier))


def _allowed(rows: tuple[Release, ...], specifier: str) -> Iterator[Release]:
    from packaging.specifiers import SpecifierSet

    try:
        allowed = SpecifierSet(specifier)
        yield from [row for row in rows if allowed.contains(row.version)]
    # InvalidSpecifier is one; Python raises another for numbers of thousands of digits.
    except ValueError:
        return


def _trimmed(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """1.15 and 1.15.0 are the same release."""
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def pythons_supported(rows: tuple[Release, ...]) -> tuple[str, ...]:
    """The Python versions with builds of one of these releases; empty if any Python will do."""
    known = [row for row in rows if _built_for(row)]
    return tuple(
        row.version for row in PYTHONS if any(runs_on(release, row.version) for release in known)
    )


def _built_for(row: Release) -> tuple[str, ...]:
    """The Python versions with a build; jax has none, but it needs the jaxlib of its release."""
    if row.package != "jax":
        return row.pythons
    return next((lib.pythons for lib in versions_of("jaxlib") if lib.version == row.version), ())


def runs_on(row: Release, python: str) -> bool:
    from packaging.specifiers import SpecifierSet

    pythons = _built_for(row)
    allowed = SpecifierSet(row.requires_python).contains(f"{python}.99")
    return python in pythons if row.pythons else allowed and (not pythons or python in pythons)


def runs_anywhere(package: str, python: str) -> bool:
    """Whether some release of a package is on record for a Python version."""
    return any(runs_on(row, python) for row in versions_of(package))


def python_here(attempt: Attempt) -> tuple[str, bool]:
    """The Python that the installer ran for, and whether it is inferred; empty if not known."""
    python = attempt.environment.python
    offered = [
        row for row in versions_of(attempt.package) if row.version in (attempt.offered or ())
    ]
    if python and all(runs_on(row, python) for row in offered):
        return python, False
    pythons, _ = inferred_from_offers(attempt)
    return (pythons[0], True) if len(pythons) == 1 else ("", False)


def inferred_from_offers(attempt: Attempt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The Python versions and platforms for which pip offers exactly the listed releases.

    pip lists every release that has a wheel for its Python and platform. The index must be the
    usual one: PyTorch's own indexes have only some releases.
    """
    rows = versions_of(attempt.package)
    offered = set(attempt.offered or ())
    listed = [row for row in rows if row.version in offered]
    if not listed or attempt.indexes or any("+" in version for version in offered):
        return (), ()
    # Releases up to this one had been published when the log was written.
    horizon = max(
        _minor(row) for row in (*listed, *(rows_allowed(attempt) if attempt.version else ()))
    )
    seen = {_minor(row) for row in listed}
    pairs = [
        (python.version, platform)
        for python in PYTHONS
        for platform in platforms_of(attempt.environment)
        if all(_offers(row, python.version, platform) for row in listed)
        and seen
        == {
            _minor(row)
            for row in rows
            if _minor(row) <= horizon and _offers(row, python.version, platform)
        }
    ]
    return (
        tuple(dict.fromkeys(python for python, _ in pairs)),
        tuple(dict.fromkeys(platform for _, platform in pairs)),
    )


def _offers(row: Release, python: str, platform: str) -> bool:
    return runs_on(row, python) and row.has_wheel_for(platform)


def _minor(row: Release) -> tuple[int, ...]:
    return release_numbers(row.version)[:2]


_OF_SYSTEM = {"linux": "linux_", "windows": "win_", "macos": "macosx_", "": ""}


def platforms_of(environment: Environment) -> tuple[str, ...]:
    """The platforms of the table that the environment may be."""
    prefix, machine = _OF_SYSTEM[environment.system], environment.machine
    if environment.system == "windows":
        return ("win_amd64",)
    return tuple(key for key in PLATFORMS if key.startswith(prefix) and key.endswith(machine))
