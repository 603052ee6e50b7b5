"""Changes to a program's environment as values: applied in one place, to a copy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from whygpu.model.policy import Action

LIBRARY_PATH = "LD_LIBRARY_PATH"


def changed(environ: Mapping[str, str], actions: Iterable[Action]) -> dict[str, str]:
    """The environment after the actions, in order."""
    result = dict(environ)
    for action in actions:
        if action.kind == "set":
            result[action.name] = action.value
        elif action.kind == "unset":
            result.pop(action.name, None)
        elif action.kind == "prepend":
            _set_folders(result, action.name, [action.value, *folders(result, action.name)])
        elif action.kind == "remove":
            rest = [item for item in folders(result, action.name) if not same(item, action.value)]
            _set_folders(result, action.name, rest)
        elif action.kind == "add-flag":
            before = result.get(action.name, "").strip()
            result[action.name] = f"{before} {action.value}".strip()
    return result


def folders(environ: Mapping[str, str], name: str) -> list[str]:
    """The entries of a search path. An empty variable has none, as for the loader."""
    value = environ.get(name, "")
    return value.split(os.pathsep) if value else []


def same(entry: str, folder: str) -> bool:
    """Whether an entry means the folder. An empty entry means the current one."""
    return os.path.normpath(entry or ".") == os.path.normpath(folder)


def _set_folders(environ: dict[str, str], name: str, entries: list[str]) -> None:
    if entries:
        environ[name] = os.pathsep.join(entries)
    else:
        environ.pop(name, None)
