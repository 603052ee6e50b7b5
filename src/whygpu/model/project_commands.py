"""How the tools that manage an environment install packages and record them in the project.

A tool that cannot do exactly what an `Install` says gives None: pip installs the packages then. The
commands of uv, poetry and pipenv were carried out with the real tools. Those of pdm and pixi follow
their documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.remedy import Install, InstallOption, Word, a_name, a_path, a_requirement
from whygpu.model.target import Manager, ManagerName

Words = tuple[Word, ...]

_NAME = late(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class _Tool(NamedTuple):
    commands: Callable[[Install, Manager], tuple[Words, ...]]
    files: str
    """The files of a project that record its packages."""
    restores: str
    """The command that makes the environment match these files again."""
    options: frozenset[InstallOption] = frozenset()
    """Options of an Install that the tool has as well."""
    takes_an_index: bool = True


def project_commands(step: Install, manager: Manager) -> tuple[Words, ...] | None:
    """The manager's own commands for an installation; None if none of them do exactly this."""
    tool = _TOOLS.get(manager.name)
    if tool is None or not manager.certain:
        return None
    if not {name_of(name) for name in step.removes} <= set(manager.declared):
        # A project cannot remove a package that it does not list.
        return None
    if not tool.options.issuperset(step.options) or (step.index_url and not tool.takes_an_index):
        return None
    if manager.name == "pixi" and not manager.feature:
        return None
    return tool.commands(step, manager)


def note_on_manager(step: Install, manager: Manager) -> str:
    """What the user has to know about the tool that manages the environment."""
    if manager.name == "conda":
        return (
            " conda does not know what pip installs: install what you need from conda first, "
            "because a later `conda install` can overwrite it."
        )
    if manager.name == "hatch":
        return (
            " hatch creates this environment from pyproject.toml: change the requirement there as "
            "well, or the change is lost when hatch creates the environment again."
        )
    tool = _TOOLS[manager.name]
    if not manager.certain:
        return (
            f" {tool.files.rpartition(' ')[2]} is next to this environment: if {manager.name} "
            f"manages it, change the requirement with {manager.name} instead, because "
            f"`{tool.restores}` undoes what pip does."
        )
    if project_commands(step, manager) is None:
        return (
            f" {manager.name} manages this environment: `{tool.restores}` can undo this command, "
            f"unless {tool.files} say the same."
        )
    more = "" if manager.project else " Run it in the folder of the project."
    if manager.name == "uv" and step.index_url:
        more = (
            f" Then add `explicit = true` to the index {_index_name(step.index_url)} in "
            "pyproject.toml: without it, uv searches that index first for every package."
        )
    return f" The command changes {tool.files} as well, so that `{tool.restores}` keeps it.{more}"


def name_of(requirement: str) -> str:
    """The normalised name of the package."""
    match = _NAME.match(requirement)
    return re.sub(r"[-_.]+", "-", match.group()).lower() if match else ""


def _index_name(url: str) -> str:
    """A name for the index in the project's files: pytorch-cu126."""
    tag = url.rstrip("/").rpartition("/")[2]
    return f"pytorch-{tag}" if url.startswith("https://download.pytorch.org/") else tag


def _changes(step: Install, remove: Words, add: Words, wanted: Words = ()) -> tuple[Words, ...]:
    """The command that removes and the one that adds, each only if there is something to do."""
    found = []
    if step.removes:
        found.append((*remove, *step.removes))
    if step.requirements:
        found.append((*add, *(wanted or map(a_requirement, step.requirements))))
    return tuple(found)


def _uv(step: Install, manager: Manager) -> tuple[Words, ...]:
    project = ("--project", a_path(manager.project))
    index = ("--index", f"{_index_name(step.index_url)}={step.index_url}") if step.index_url else ()
    options = (
        *_for_each(step, "upgrade", "--upgrade-package"),
        *_for_each(step, "force-reinstall", "--reinstall-package"),
        *_for_each(step, "only-wheels", "--no-build-package"),
    )
    return _changes(step, ("uv", "remove", *project), ("uv", "add", *project, *options, *index))


def _for_each(step: Install, option: InstallOption, word: str) -> Iterator[str]:
    if option in step.options:
        for requirement in step.requirements:
            yield from (word, name_of(requirement))


def _poetry(step: Install, manager: Manager) -> tuple[Words, ...]:
    poetry: Words = ("poetry", "-C", a_path(manager.project)) if manager.project else ("poetry",)
    name = _index_name(step.index_url)
    # Only packages that name an explicit source are installed from it.
    source = (*poetry, "source", "add", "--priority=explicit", name, step.index_url)
    index = ("--source", name) if step.index_url else ()
    # Poetry does nothing about a package that the project lists, unless a version is given.
    latest = tuple(
        f"{text}@latest" if "upgrade" in step.options and name_of(text) == text else text
        for text in step.requirements
    )
    wanted = tuple(text if "@" in text else a_requirement(text) for text in latest)
    changes = _changes(step, (*poetry, "remove"), (*poetry, "add", *index), wanted)
    return (source, *changes) if step.index_url else changes


def _pdm(step: Install, manager: Manager) -> tuple[Words, ...]:
    project = ("-p", a_path(manager.project))
    return _changes(step, ("pdm", "remove", *project), ("pdm", "add", *project))


def _pipenv(step: Install, manager: Manager) -> tuple[Words, ...]:
    index = ("--index", step.index_url) if step.index_url else ()
    changes = _changes(step, ("pipenv", "uninstall"), ("pipenv", "install", *index))
    return (("cd", a_path(manager.project)), *changes)


def _pixi(step: Install, manager: Manager) -> tuple[Words, ...]:
    feature = () if manager.feature == "default" else ("--feature", a_name(manager.feature))
    project = ("--manifest-path", a_path(manager.project), "--pypi", *feature)
    index = ("--index", step.index_url) if step.index_url else ()
    return _changes(step, ("pixi", "remove", *project), ("pixi", "add", *project, *index))


_TOOLS: Mapping[ManagerName, _Tool] = {
    "uv": _Tool(
        _uv,
        "pyproject.toml and uv.lock",
        "uv sync",
        frozenset({"upgrade", "force-reinstall", "only-wheels"}),
    ),
    "poetry": _Tool(
        _poetry, "pyproject.toml and poetry.lock", "poetry sync", frozenset({"upgrade"})
    ),
    "pdm": _Tool(_pdm, "pyproject.toml and pdm.lock", "pdm sync --clean", takes_an_index=False),
    "pipenv": _Tool(_pipenv, "Pipfile and Pipfile.lock", "pipenv clean"),
    "pixi": _Tool(_pixi, "the manifest and pixi.lock", "pixi install"),
}
"""uv: what `uv pip install` installs, `uv sync` removes. conda and hatch have no such commands for
packages of the Python index."""
