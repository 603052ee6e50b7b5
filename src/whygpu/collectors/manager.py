"""Which tool manages the target environment, by the files that the tool leaves."""

from __future__ import annotations

import json
import os.path
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from whygpu.collectors.interpreter import pyvenv
from whygpu.host.base import Host
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.target import Interpreter, Manager, ManagerName

_NAME = late(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_POETRY_ENVIRONMENT = late(r"/pypoetry/virtualenvs/[^/]+-(?P<hash>[\w-]{8})-py\d[\d.]*\Z")
_HATCH_ENVIRONMENT = late(r"/hatch/env/virtual/[^/]+/")
_LOCK_FILES: tuple[tuple[str, ManagerName], ...] = (
    ("uv.lock", "uv"),
    ("poetry.lock", "poetry"),
    ("pdm.lock", "pdm"),
    ("Pipfile.lock", "pipenv"),
)


class _Environment(NamedTuple):
    host: Host
    interpreter: Interpreter

    @property
    def prefix(self) -> str:
        return self.interpreter.prefix

    @property
    def around(self) -> str:
        """The folder that contains the environment."""
        return os.path.dirname(self.prefix)

    def read(self, path: str) -> str | None:
        text = self.host.read(path)
        return text.value if isinstance(text, Known) else None

    def exists(self, path: str) -> bool:
        return isinstance(self.host.stat(path), Known)


def collect(host: Host, interpreter: Interpreter) -> Observed[Manager]:
    """The tool that created the environment, or whose lock file is next to it."""
    environment = _Environment(host, interpreter)
    for finder in (_pixi, _conda, _pipenv, _poetry, _pdm, _uv, _hatch, _lock_file):
        found = finder(environment)
        if found is not None:
            return Known(found, interpreter.prefix)
    return Absent(
        f"files of uv, poetry, pdm, pipenv, hatch, conda and pixi at {interpreter.prefix}"
    )


def _pixi(environment: _Environment) -> Manager | None:
    """pixi's own record names the manifest (from its documentation, not tried with pixi)."""
    record = _parsed(json.loads, environment.read(f"{environment.prefix}/conda-meta/pixi"))
    manifest, name = record.get("manifest_path"), record.get("environment_name")
    if not isinstance(manifest, str) or not os.path.isabs(manifest):
        return None
    if environment.prefix != f"{os.path.dirname(manifest)}/.pixi/envs/{name}":
        # A copy of the environment, or one that was moved: pixi would change the other one.
        return None
    content = _toml(environment, manifest)
    in_pyproject = os.path.basename(manifest) == "pyproject.toml"
    settings = _table(content, "tool", "pixi") if in_pyproject else content
    if name == "default":
        declared = (*_table(settings, "pypi-dependencies"), *_project_dependencies(content))
        return Manager("pixi", manifest, True, _names(declared), "default")
    features = _pixi_features(settings, name)
    if len(features) != 1:
        # Which of several features should get a package is the user's choice.
        return Manager("pixi", manifest, True)
    declared = tuple(_table(settings, "feature", features[0], "pypi-dependencies"))
    return Manager("pixi", manifest, True, _names(declared), features[0])


def _pixi_features(settings: dict[str, Any], environment: Any) -> tuple[str, ...]:
    listed = _table(settings, "environments").get(environment)
    features = listed.get("features") if isinstance(listed, dict) else listed
    found = features if isinstance(features, list) else []
    return tuple(item for item in found if isinstance(item, str))


def _conda(environment: _Environment) -> Manager | None:
    if not environment.exists(f"{environment.prefix}/conda-meta"):
        return None
    return Manager("conda", "", True)


def _pipenv(environment: _Environment) -> Manager | None:
    """pipenv writes the folder of the project into the environment."""
    project = (environment.read(f"{environment.prefix}/.project") or "").strip()
    content = _toml(environment, f"{project}/Pipfile") if os.path.isabs(project) else {}
    if not content:
        return None
    suffix = f"-{_digest(f'{project}/Pipfile')[:8]}"
    if environment.prefix != f"{project}/.venv" and not environment.prefix.endswith(suffix):
        # In a copy of the environment, pipenv would change the other one.
        return None
    return Manager("pipenv", project, True, _names(_table(content, "packages")))


def _poetry(environment: _Environment) -> Manager | None:
    """In poetry's cache folder, or .venv in a project with a poetry.lock."""
    if match := _POETRY_ENVIRONMENT.search(environment.prefix):
        project = _poetry_project(environment, match["hash"])
        return _poetry_manager(environment, project) or Manager("poetry", "", True)
    made_by_virtualenv = "virtualenv" in pyvenv(environment.host, environment.prefix)
    if _is_in_project(environment, "poetry.lock") and made_by_virtualenv:
        return _poetry_manager(environment, environment.around)
    return None


def _poetry_project(environment: _Environment, wanted: str) -> str:
    """The working folder or one above it, if poetry would name its environment so."""
    folder = environment.host.environ.get("PWD", "")
    while folder not in ("", "/"):
        if poetry_hash(folder) == wanted:
            return folder
        folder = os.path.dirname(folder)
    return ""


def poetry_hash(folder: str) -> str:
    """The part of an environment's name that poetry computes from the project's folder."""
    return _digest(folder)[:8]


def _digest(path: str) -> str:
    import base64
    import hashlib

    digest = hashlib.sha256(path.encode(errors="surrogateescape")).digest()
    return base64.urlsafe_b64encode(digest).decode()


def _poetry_manager(environment: _Environment, project: str) -> Manager | None:
    content = _toml(environment, f"{project}/pyproject.toml") if project else {}
    if not content:
        return None
    older = _table(content, "tool", "poetry", "dependencies")
    declared = _names([*_project_dependencies(content), *older])
    return Manager("poetry", project, True, declared)


def _pdm(environment: _Environment) -> Manager | None:
    """pdm writes the interpreter of the project next to pyproject.toml."""
    if not _is_in_project(environment, ".pdm-python"):
        return None
    chosen = (environment.read(f"{environment.around}/.pdm-python") or "").strip()
    if os.path.dirname(os.path.dirname(chosen)) != environment.prefix:
        return None
    return _project_manager(environment, "pdm")


def _uv(environment: _Environment) -> Manager | None:
    if not _is_in_project(environment, "uv.lock"):
        return None
    made_by_uv = "uv" in pyvenv(environment.host, environment.prefix)
    # The variable makes uv use another environment for every project.
    if not made_by_uv or environment.host.environ.get("UV_PROJECT_ENVIRONMENT"):
        return None
    return _project_manager(environment, "uv")


def _project_manager(environment: _Environment, name: ManagerName) -> Manager | None:
    """Only a pyproject.toml with a [project] table can get dependencies."""
    content = _toml(environment, f"{environment.around}/pyproject.toml")
    if not _table(content, "project"):
        return None
    return Manager(name, environment.around, True, _names(_project_dependencies(content)))


def _hatch(environment: _Environment) -> Manager | None:
    if _HATCH_ENVIRONMENT.search(environment.prefix):
        return Manager("hatch", "", True)
    return None


def _lock_file(environment: _Environment) -> Manager | None:
    for file, name in _LOCK_FILES:
        if _is_in_project(environment, file):
            return Manager(name, environment.around, False)
    return None


def _is_in_project(environment: _Environment, file: str) -> bool:
    """Whether the environment is the folder .venv next to this file."""
    is_own = os.path.basename(environment.prefix) == ".venv"
    return is_own and environment.exists(f"{environment.around}/{file}")


def _toml(environment: _Environment, path: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return _parsed(tomllib.loads, environment.read(path))


def _parsed(parse: Callable[[str], Any], text: str | None) -> dict[str, Any]:
    """Empty if the text is not a valid object."""
    try:
        content = parse(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _table(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content


def _project_dependencies(content: dict[str, Any]) -> Iterator[str]:
    listed = _table(content, "project").get("dependencies")
    return (item for item in (listed if isinstance(listed, list) else ()) if isinstance(item, str))


def _names(requirements: Iterable[str]) -> tuple[str, ...]:
    found = (_NAME.match(text) for text in requirements)
    return tuple(
        dict.fromkeys(re.sub(r"[-_.]+", "-", match[1]).lower() for match in found if match)
    )
