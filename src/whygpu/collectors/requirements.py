"""Requirements between installed packages, and which of them are not satisfied."""

from __future__ import annotations

import operator

from whygpu.host.base import Platform
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Interpreter, Package, RequirementConflict, active
from whygpu.tables.distributions import matters, normalised

_REQUIREMENT = late(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^]]*\])?\s*\(?(?P<versions>[^();@]*)\)?\s*"
    r"(?P<url>@[^;]*)?"
)
_EXTRA = late(r"\bextra\s*==")
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}


def holds_in(platform: Platform, interpreter: Interpreter, line: str) -> bool:
    """Whether a Requires-Dist line applies to this interpreter, without extras."""
    marker = line.partition(";")[2]
    if not marker.strip():
        return True
    if _EXTRA.search(marker):
        return False
    python = _PYTHON_MARKER.fullmatch(marker)
    if python is not None:
        release = ".".join(interpreter.version.split(".")[:2])
        simply = met_simply(python["compared"] + python["release"], release)
        if simply is not None:
            return simply
    from packaging.markers import InvalidMarker, Marker

    try:
        return Marker(marker).evaluate(_marker_environment(platform, interpreter))
    except (InvalidMarker, RecursionError):
        # It is unknown. Keep the line, so that its version is checked.
        return True


def conflicts(
    packages: Observed[tuple[Package, ...]],
) -> Observed[tuple[RequirementConflict, ...]]:
    """Unmet requirements among the packages that matter to GPU use.

    A package may have the metadata of two releases. If one of them meets a requirement, it is
    unknown whether that is violated, and two-releases-installed reports the package.
    """
    if not isinstance(packages, Known):
        return packages
    installed: dict[str, list[str]] = {}
    for package in active(packages.value):
        installed.setdefault(package.name, []).append(package.version)
    found = tuple(
        conflict
        for package in active(packages.value)
        for line in package.requires
        if (conflict := _conflict(package, line, installed)) is not None
    )
    return Known(found, "Requires-Dist of the installed packages")


def _conflict(
    package: Package, line: str, installed: dict[str, list[str]]
) -> RequirementConflict | None:
    requirement = line.partition(";")[0].strip()
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        return None
    name = normalised(match["name"])
    if not matters(name):
        return None
    if name not in installed:
        return RequirementConflict(package.name, requirement, Absent(f"{name} in the packages"))
    versions = match["versions"].strip()
    judged = [_met(versions, release) for release in installed[name]] if versions else []
    if not versions or any(isinstance(met, Known) and met.value for met in judged):
        return None
    found: Observed[str] = Known(installed[name][-1], f"metadata of {name}")
    found = next((met for met in judged if isinstance(met, Unknown)), found)
    return RequirementConflict(package.name, requirement, found)


_RELEASE = late(r"\d{1,9}(?:\.\d{1,9}){0,5}")
_COMPARED = late(rf"\s*(?P<compared>>=|<=|==|!=|<|>)\s*(?P<release>{_RELEASE.pattern})\s*")
_PYTHON_MARKER = late(
    rf"\s*python_version\s*(?P<compared>[<>]=?)\s*[\"'](?P<release>{_RELEASE.pattern})[\"']\s*"
)
_COMPARISONS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def met_simply(versions: str, installed: str) -> bool | None:
    """Whether a release meets comparisons with releases; None if it takes more than that.

    Nearly all requirements are of this kind. Importing packaging for them would take a tenth of the
    time of `whygpu check --no-probe`.
    """
    parts = [_COMPARED.fullmatch(part) for part in versions.split(",")]
    if _RELEASE.fullmatch(installed) is None or not all(parts):
        return None
    return all(
        _COMPARISONS[part["compared"]](*_padded(installed, part["release"]))
        for part in parts
        if part is not None
    )


def _padded(one: str, other: str) -> tuple[list[int], list[int]]:
    """Both releases with the same number of parts: 1.2 is 1.2.0."""
    parts = [[int(number) for number in release.split(".")] for release in (one, other)]
    longest = max(map(len, parts))
    first, second = (part + [0] * (longest - len(part)) for part in parts)
    return first, second


def _met(versions: str, installed: str) -> Known[bool] | Unknown:
    simply = met_simply(versions, installed)
    if simply is not None:
        return Known(simply, versions)
    # Imported here because it costs more than reading all the metadata.
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return Known(
            SpecifierSet(versions).contains(Version(installed), prereleases=True), versions
        )
    except InvalidVersion:
        return Unknown(f"{installed!r} is not a valid version")
    # InvalidSpecifier is one; Python raises another for numbers of thousands of digits.
    except ValueError:
        return Unknown(f"{versions!r} is not a valid version requirement")


def _marker_environment(platform: Platform, interpreter: Interpreter) -> dict[str, str]:
    system = platform.system
    return {
        "extra": "",
        "implementation_name": interpreter.implementation,
        "implementation_version": interpreter.version,
        "os_name": "nt" if system == "Windows" else "posix",
        "platform_machine": platform.machine,
        "platform_python_implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(
            interpreter.implementation, interpreter.implementation
        ),
        "platform_release": platform.kernel,
        "platform_system": system,
        "platform_version": "",
        "python_full_version": interpreter.version,
        "python_version": ".".join(interpreter.version.split(".")[:2]),
        "sys_platform": _SYSTEMS.get(system, system.lower()),
    }
