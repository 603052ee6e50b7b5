"""Frameworks that an import finds although no package metadata describe them.

No package manager knows a checkout, a build folder or an archive on sys.path, but `import torch`
finds it, so "not installed" would be wrong. A copy without metadata may also come before an
installed one, which is then not imported. The probes find out what such a copy is. If PyTorch has
no metadata at all, its own version file says it as well.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator

from whygpu.collectors.frameworks import torch
from whygpu.collectors.frameworks.shared import Scene, constants
from whygpu.model.observed import Absent, Known, Observed, Undetermined, Unknown
from whygpu.model.target import Build, Framework, FrameworkName

MODULES: tuple[FrameworkName, ...] = ("tensorflow", "keras", "jax", "torch")
"""Frameworks whose module has the same name, and that probes run."""


def as_imported(scene: Scene, described: Iterable[Framework]) -> Iterator[Framework]:
    """The described frameworks, corrected if an import finds another copy, then those without
    metadata."""
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
    """Where an import finds a module, according to the target or, if that is unknown, its path."""
    reported = _reported_place(scene, name)
    if reported is not None:
        return reported
    for path in scene.interpreter.paths:
        folder = os.path.join(path, name)
        # A folder alone may contain anything, such as a project's notes about the framework.
        if isinstance(scene.host.stat(os.path.join(folder, "__init__.py")), Known):
            return Known(folder, path)
    return Absent(f"{name} on sys.path")


def _reported_place(scene: Scene, name: FrameworkName) -> Observed[str] | None:
    modules = scene.interpreter.modules
    found = modules.value if isinstance(modules, Known) else ()
    return next((module.place for module in found if module.name == name), None)


def _other_copy(scene: Scene, framework: Framework) -> str | None:
    """The place that an import finds, if it is not the described one."""
    place = _reported_place(scene, framework.name)
    if not isinstance(place, Known):
        return None
    # Metadata without files (an editable install) are described by the folder that contains them.
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
    if name == "torch" and (stated := torch.without_metadata(scene, folder)) is not None:
        return stated
    reason = Unknown(f"{folder} has no package metadata")
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
