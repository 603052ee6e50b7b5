"""Watches the memory of a process, from the import of a framework to its end."""

import os
import sys

from whygpu_bootstrap import frameworks, process_record
from whygpu_bootstrap.memory import curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_watched: "dict[Any, Any]" = {}
_state: "dict[str, dict[str, int] | None]" = {"imported": None}


def start(framework: str, part: "Any", module: "Any") -> None:
    """Watch the memory of a framework.

    `part` has `start(module)`, which starts nothing in the framework, `at_end(module)` and
    `after_fork()`.
    """
    part.start(module)
    _watched[framework] = (part, module)
    with process_record.noted("the memory at the import of %s" % framework):
        _state["imported"] = footprint()
    process_record.memory_at_end(sys.modules[__name__])


def result() -> "dict[str, Any]":
    """The curves and, if an exception ended the program, what can be seen of it."""
    curve.stop()
    found: "dict[str, Any]" = {"curves": curve.curves()}
    if getattr(sys, "last_value", None) is not None:
        found["imported"] = _state["imported"]
        found.update(frameworks.part("memory.exhaustion").result(_watched))
    return found


def imported() -> "dict[str, int] | None":
    """The memory of the process when its frameworks were imported."""
    return _state["imported"]


def footprint() -> "dict[str, int]":
    """The memory that the process has now, in bytes."""
    with open("/proc/self/statm") as file:
        size, resident, shared, _, _, data, _ = [int(word) for word in file.read().split()]
    page = os.sysconf("SC_PAGE_SIZE")
    return {"size": size * page, "resident": (resident - shared) * page, "data": data * page}


def after_fork() -> None:
    """What the parent has started cannot be asked in a child. What the child starts is watched."""
    curve.reset()
    for part, _ in list(_watched.values()):
        part.after_fork()
