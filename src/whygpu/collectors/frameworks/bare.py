"""Frameworks without metadata: a checkout or a build folder on sys.path.

No package manager knows them, and yet `import torch` finds them: to say that none is installed
would be wrong. What they are is for the probes to tell.
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Iterator

from whygpu.collectors.frameworks.shared import Scene, constants
from whygpu.model.observed import Known, Unknown
from whygpu.model.target import Build, Framework, FrameworkName

MODULES: tuple[FrameworkName, ...] = ("tensorflow", "keras", "jax", "torch")
"""Frameworks whose module bears their name, and that are run for real."""


def collect(scene: Scene, known: Collection[FrameworkName]) -> Iterator[Framework]:
    for name in MODULES:
        folder = None if name in known else _folder(scene, name)
        if folder is not None:
            reason = Unknown(f"{folder} has no metadata beside it")
            yield Framework(
                name=name,
                distribution=name,
                version=_version(scene, folder),
                location=folder,
                build=Build(reason, reason, reason, reason, reason),
                libraries=reason,
            )


def _folder(scene: Scene, module: str) -> str | None:
    for path in scene.interpreter.paths:
        folder = os.path.join(path, module)
        # A folder alone may hold anything, such as a project's notes about the framework.
        if isinstance(scene.host.stat(os.path.join(folder, "__init__.py")), Known):
            return folder
    return None


def _version(scene: Scene, folder: str) -> str:
    stated = constants(scene.host, os.path.join(folder, "version.py"))
    values = stated.value if isinstance(stated, Known) else {}
    return str(values.get("__version__") or values.get("_version") or "unknown")
