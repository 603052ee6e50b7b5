"""Frameworks as an import finds them, where that is not what the packages' metadata describe.

No package manager knows a checkout, a build folder or an archive on sys.path, and yet `import
torch` finds it: to say that none is installed would be wrong. A copy without metadata may also come
before an installed one, which is then not what is imported. The probes tell what such a copy is.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator

from whygpu.collectors.frameworks.shared import Scene, constants
from whygpu.model.observed import Absent, Known, Observed, Undetermined, Unknown
from whygpu.model.target import Build, Framework, FrameworkName

MODULES: tuple[FrameworkName, ...] = ("tensorflow", "keras", "jax", "torch")
"""Frameworks whose module bears their name, and that are run for real."""


def as_imported(scene: Scene, described: Iterable[Framework]) -> Iterator[Framework]:
    """What the metadata describe, unless an import finds another copy; then those without any."""
    known: set[FrameworkName] = set()
    for framework in described:
        known.add(framework.name)
        place = _other_copy(scene, framework)
        yield framework if place is None else _undescribed(framework, place)
    for name in MODULES:
        found = Absent("described already") if name in known else _place(scene, name)
        if isinstance(found, Unknown):
            raise Undetermined(f"whether {name} is installed: {found.reason}")
        if isinstance(found, Known):
            yield _bare(scene, name, found.value)


def _place(scene: Scene, name: FrameworkName) -> Observed[str]:
    """Where an import finds a module, as the target says; where it was not asked, by its path."""
    told = _told(scene, name)
    if told is not None:
        return told
    for path in scene.interpreter.paths:
        folder = os.path.join(path, name)
        # A folder alone may hold anything, such as a project's notes about the framework.
        if isinstance(scene.host.stat(os.path.join(folder, "__init__.py")), Known):
            return Known(folder, path)
    return Absent(f"{name} on sys.path")


def _told(scene: Scene, name: FrameworkName) -> Observed[str] | None:
    modules = scene.interpreter.modules
    found = modules.value if isinstance(modules, Known) else ()
    return next((module.place for module in found if module.name == name), None)


def _other_copy(scene: Scene, framework: Framework) -> str | None:
    """The place of what an import finds, where it is not what was described."""
    place = _told(scene, framework.name)
    if not isinstance(place, Known):
        return None
    # Metadata without files are described by the folder that holds them: an editable install.
    whole = os.path.basename(framework.location) == framework.name
    described = scene.host.stat(framework.location)
    imported = scene.host.stat(place.value)
    same = (
        isinstance(described, Known)
        and isinstance(imported, Known)
        and described.value.identity == imported.value.identity
    )
    elsewhere = framework.location in scene.interpreter.paths
    return place.value if (whole or elsewhere) and not same else None


def _undescribed(framework: Framework, place: str) -> Framework:
    reason = Unknown(
        f"an import of {framework.name} finds {place}, which the metadata of "
        f"{framework.distribution} {framework.version} do not describe"
    )
    return framework._replace(
        location=place, build=Build(reason, reason, reason, reason, reason), libraries=reason
    )


def _bare(scene: Scene, name: FrameworkName, folder: str) -> Framework:
    reason = Unknown(f"{folder} has no metadata beside it")
    return Framework(
        name=name,
        distribution=name,
        version=_version(scene, folder),
        location=folder,
        build=Build(reason, reason, reason, reason, reason),
        libraries=reason,
    )


def _version(scene: Scene, folder: str) -> str:
    stated = constants(scene.host, os.path.join(folder, "version.py"))
    values = stated.value if isinstance(stated, Known) else {}
    return str(values.get("__version__") or values.get("_version") or "unknown")
