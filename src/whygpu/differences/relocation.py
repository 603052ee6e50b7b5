"""Two environments in different folders, compared as if they were in the same one.

Otherwise, every path of one environment would differ from the other's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Interpreter
from whygpu.model.texts import with_texts

_LIBRARY_FOLDERS = ("site-packages", "dist-packages", "lib-dynload")


class Moved(NamedTuple):
    machine: Snapshot
    original: Callable[[str], str]
    """The text with the folders as they are really called."""


def moved(machine: Snapshot, onto: Snapshot) -> Moved:
    """The machine with its environment's folders named as those of the other one."""
    one, other = machine.target.interpreter, onto.target.interpreter
    if not isinstance(one, Known) or not isinstance(other, Known):
        return Moved(machine, str)
    names = _new_names(one.value, other.value)
    if not names:
        return Moved(machine, str)
    there = _renaming(names)
    return Moved(
        with_texts(machine, lambda text, _: there(text)),
        _renaming({new: old for old, new in names.items()}),
    )


def _renaming(names: dict[str, str]) -> Callable[[str], str]:
    # The longest first: site-packages is inside the prefix.
    pattern = "|".join(re.escape(folder) for folder in sorted(names, key=len, reverse=True))
    folders = re.compile(rf"(?<![\w.~-])(?:{pattern})(?![\w.-])")
    return lambda text: folders.sub(lambda match: names[match[0]], text)


def _new_names(one: Interpreter, other: Interpreter) -> dict[str, str]:
    names = {one.prefix: other.prefix} if one.isolated and other.isolated else {}
    for name in _LIBRARY_FOLDERS:
        mine = [path for path in one.paths if path.endswith(f"/{name}")]
        others = [path for path in other.paths if path.endswith(f"/{name}")]
        if len(mine) == len(others) == 1:
            names[mine[0]] = others[0]
    return {old: new for old, new in names.items() if old != new and len(old) > 1}
