"""Records what this process does with its time: one sampler, and the marks of its steps.

Which part of it counts is decided later, by the process that reads the record.
"""

import os
import sys
import threading
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import sampler, workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_MARKS = 10000
MOST_KEYS = 200
MOST_COMPILATIONS = 1000
ENOUGH_STEPS = 10
"""After that many steps, what a framework does only once has been done."""

_state: "dict[str, Any]" = {"sampler": None}
_hooks: "set[str]" = set()


class Marks:
    """The ends of the steps of one kind. If there are too many, every other one is kept."""

    __slots__ = ("busy", "seen", "stride", "times")

    def __init__(self) -> None:
        self.seen = 0
        self.busy = 0.0
        self.stride = 1
        self.times: "list[float]" = []


def begin(folder: "str | None" = None) -> None:
    """Start sampling. The second call does nothing.

    Files of frameworks' profilers go into the folder, or beside the record of the process.
    """
    if _state["sampler"] is not None:
        return
    started = sampler.Sampler(_between)
    _state.update(
        sampler=started,
        folder=folder,
        marks={},
        sources=[],
        compilations=[],
        children=workers.Workers(),
        began=time.time(),
        pid=os.getpid(),
    )
    started.start()
    if folder is None:
        process_record.profile_at_end(sys.modules[__name__])


def is_recording() -> bool:
    return _state["sampler"] is not None


def is_new(hook: str) -> bool:
    """Whether this hook has not been installed yet. Hooks stay when the sampling ends."""
    if hook in _hooks:
        return False
    _hooks.add(hook)
    return True


def mark(key: str, seconds: float = 0.0) -> None:
    """A step of this kind has just ended, after a call that took these seconds.

    Called for every step, so it does little.
    """
    marks = _state.get("marks")
    if marks is None:
        # A forked child, which is not sampled.
        return
    kept = marks.get(key)
    if kept is None:
        if len(marks) >= MOST_KEYS:
            return
        kept = marks[key] = Marks()
        _state["sampler"].thread = threading.get_ident()
    kept.seen += 1
    kept.busy += seconds
    if kept.seen % kept.stride == 0:
        kept.times.append(time.perf_counter())
        if len(kept.times) >= MOST_MARKS:
            del kept.times[::2]
            kept.stride *= 2


def compiled(what: str, seconds: float) -> None:
    """A framework has compiled something, which took that long and ends now."""
    found = _state.get("compilations")
    if found is not None and len(found) < MOST_COMPILATIONS:
        end = round(_state["sampler"].now(), 4)
        found.append({"what": what[:200], "end": end, "seconds": round(seconds, 4)})


def add_source(source: "Any") -> None:
    """A framework's own profiler: it has `between(steps, now)` and `result() -> file or None`."""
    _state["sources"].append(source)


def file_beside_record(name: str) -> str:
    """The path for a file of a framework's profiler, which is read with the record."""
    folder = _state["folder"]
    return process_record.beside(name) if folder is None else os.path.join(folder, name)


def _between(now: float) -> None:
    _state["children"].look(now)
    steps = max([each.seen for each in list(_state["marks"].values())] or [0])
    for source in _state["sources"]:
        source.between(steps, now)


def result() -> "dict[str, Any]":
    """The profile of this process, which ends the sampling."""
    taken = _state["sampler"]
    taken.stop()
    files = []
    for source in _state["sources"]:
        with process_record.noted("the framework's own profile"):
            files += source.result()
    stacks = sorted(taken.stacks, key=taken.stacks.get)
    found = {
        "began": _state["began"],
        "seconds": round(taken.now(), 4),
        "cores": _cores(),
        "places": taken.places.all(),
        "stacks": [list(stack) for stack in stacks],
        "times": [round(each, 4) for each in taken.times],
        "stack_of": taken.stack_of,
        "thread_seconds": [round(each, 4) for each in taken.thread_seconds],
        "process_seconds": [round(each, 4) for each in taken.process_seconds],
        "marks": [_marks_of(key, each, taken.began) for key, each in _state["marks"].items()],
        "workers": _state["children"].found(),
        "waited": _state["children"].waited,
        "compilations": _state["compilations"],
        "files": files,
        "cost_seconds": round(taken.spent, 4),
    }
    after_fork()
    return found


def _marks_of(key: str, marks: "Marks", began: float) -> "dict[str, Any]":
    times = [round(each - began, 4) for each in marks.times]
    return {
        "key": key,
        "seen": marks.seen,
        "stride": marks.stride,
        "times": times,
        "busy": round(marks.busy, 4),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def after_fork() -> None:
    """Forget everything. A child has no sampler: threads do not survive a fork."""
    _state.clear()
    _state["sampler"] = None
