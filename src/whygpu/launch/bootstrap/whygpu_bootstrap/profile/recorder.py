"""Records what this process does with its time: one sampler, and the marks of its steps.

Which part of it counts is decided later, by the process that reads the record.
"""

import os
import sys
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import (
    device_window,
    gpu_state,
    lost_interrupt,
    sampler,
    usable_cores,
    workers,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable

MOST_MARKS = 10000
MOST_KEYS = 200
MOST_COMPILATIONS = 1000
MOST_STACKS = 16
"""Different stacks around the steps of one kind that are kept."""
DEEPEST = 200
FIRST_SAVED = 5.0
"""Seconds after the first step: then the profile is first saved, after twice as many again, and so
on. Importing a framework and preparing the data may take longer than that."""
LONGEST_UNSAVED = 60.0
SAVING_COST = 500
"""Times what saving took: so long it is not saved again. The largest profile takes 0.1 s."""
FAMILIES = ("keras", "torch", "session", "tensorflow", "jax")
"""The first of these that made steps: Keras makes steps of its backend, too."""

_state: "dict[str, Any]" = {"sampler": None}
_hooks: "set[str]" = set()
_starts: "dict[str, tuple[Callable[[Any], None], Any]]" = {}
"""How each framework is prepared, for a forked child that trains."""
_first_step = [device_window.FIRST_STEP]


class Marks:
    """The ends of the steps of one kind. If there are too many, every other one is kept."""

    __slots__ = ("around", "busy", "seen", "stride", "times")

    def __init__(self) -> None:
        self.seen = 0
        self.around: "set[tuple[tuple[str, str], ...]]" = set()
        """The functions, as (file, name), in which the first, second, fourth, ... step ended."""
        self.busy = 0.0
        self.stride = 1
        self.times: "list[float]" = []


def prepare(name: str, start: "Callable[[Any], None]", framework: "Any") -> None:
    """Start sampling, for a framework that was imported. start(framework) calls this."""
    _starts[name] = (start, framework)
    begin()


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
        window=device_window.Window(started.now, _first_step[0]),
        compilations=[],
        data_adapters=set(),
        python_calls={},
        watchers=[],
        children=workers.Workers(),
        gpus=gpu_state.GpuState(),
        interrupt=lost_interrupt.LostInterrupt(),
        saving=Saving(),
        began=time.time(),
        pid=os.getpid(),
    )
    started.start()
    if folder is None:
        process_record.profile_at_end(sys.modules[__name__])


def record_from(step: int) -> None:
    """Run the framework's profiler after this step, instead of after the first few."""
    if step:
        _first_step[0] = step


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
    # The sampling may end in another thread while this one is here.
    state = _state
    marks = state.get("marks")
    if marks is None:
        if state.get("forked"):
            _begin_in_child()
        return
    kept = marks.get(key)
    if kept is None:
        if len(marks) >= MOST_KEYS:
            return
        family = key.partition(" ")[0]
        # A copy: another thread may add the first step of its kind.
        if not any(each.startswith(family) for each in list(marks)):
            state["sampler"].settle_later()
        kept = marks.setdefault(key, Marks())
        state["sampler"].follow()
    kept.seen += 1
    kept.busy += seconds
    if kept.seen & (kept.seen - 1) == 0 and len(kept.around) < MOST_STACKS:
        kept.around.add(_functions_around())
    if kept.seen % kept.stride == 0:
        kept.times.append(time.perf_counter())
        if len(kept.times) >= MOST_MARKS:
            del kept.times[::2]
            kept.stride *= 2
    if state["window"].due:
        _switch_window(state)


def _functions_around() -> "tuple[tuple[str, str], ...]":
    """The functions that are on the stack of the caller."""
    found: "list[tuple[str, str]]" = []
    frame: "types.FrameType | None" = sys._getframe(2)
    while frame is not None and len(found) < DEEPEST:
        found.append((frame.f_code.co_filename, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(found)


def reads_mode_of(call: "types.CodeType") -> None:
    """Note of each call of modules of PyTorch, which have this code, in which mode they are."""
    _state["sampler"].places.reads_mode_of(call)


def _begin_in_child() -> None:
    """A forked child made a step: it trains. Until then it is not sampled: most children load data,
    or run another program."""
    _state["forked"] = False
    with process_record.noted("sampling a forked child"):
        for start, framework in list(_starts.values()):
            start(framework)


def compiled(
    what: str, seconds: float, why: "dict[str, Any]", ended: "float | None" = None
) -> None:
    """A framework has compiled something, which took that long and ended now or at a time.time().

    `why` has what is known of the function and of what it was compiled for (Compilation in
    model/profile.py). Of too many, the last are kept: the first steps are not judged.
    """
    state = _state
    found = state.get("compilations")
    if found is None:
        return
    end = state["sampler"].now() if ended is None else ended - state["began"]
    found.append(dict(why, what=what[:200], end=round(end, 4), seconds=round(seconds, 4)))
    if len(found) > MOST_COMPILATIONS:
        del found[0]


def takes_data_from(adapter: str) -> None:
    """Keras takes batches through an adapter of this type."""
    found = _state.get("data_adapters")
    if found is not None:
        found.add(adapter)


def called_python(name: str, seconds: float) -> None:
    """TensorFlow has called a Python function of the program, which took that long.

    Threads may do so at the same time: a call that is lost by that changes no answer.
    """
    found = _state.get("python_calls")
    if found is not None and (name in found or len(found) < MOST_KEYS):
        found[name] = found.get(name, 0.0) + seconds


def watch(watcher: "Any") -> None:
    """Call watcher.look(now) about ten times a second, and at the end."""
    _state["watchers"].append(watcher)


def add_profiler(family: str, profiler: "Any") -> None:
    """The profiler of a framework, for a few of its steps."""
    _state["window"].add(family, profiler)


def window() -> "Any":
    """The recording of the framework's profiler; None if nothing is recorded."""
    return _state.get("window")


def _switch_window(state: "dict[str, Any]") -> None:
    with process_record.noted("the profiler of the framework"):
        state["window"].switch()
        state["gpus"].look_at_processes()


def file_beside_record(name: str) -> str:
    """The path for a file of a framework's profiler, which is read with the record."""
    folder = _state["folder"]
    return process_record.beside(name) if folder is None else os.path.join(folder, name)


def _between(now: float) -> bool:
    own = [_state["children"], _state["gpus"], _state["interrupt"]]
    for watcher in [*own, *_state["watchers"]]:
        watcher.look(now)
    steps = _steps_by_family()
    family = next((name for name in FAMILIES if name in steps), "")
    _state["window"].look(_profiled_by(family), steps.get(family, 0), now)
    _state["sampler"].hurry(_state["window"].is_near())
    return _state["saving"].look(now)


def _steps_by_family() -> "dict[str, int]":
    steps: "dict[str, int]" = {}
    for key, marks in list(_state["marks"].items()):
        family = key.partition(" ")[0]
        steps[family] = max(steps.get(family, 0), marks.seen)
    return steps


def _profiled_by(family: str) -> str:
    """The framework whose profiler sees the steps of this kind."""
    if family == "keras":
        keras: "Any" = sys.modules.get("keras")
        backend = getattr(getattr(keras, "backend", None), "backend", None)
        return str(backend()) if backend is not None else "tensorflow"
    return "tensorflow" if family == "session" else family


class Saving:
    """Saves the profile now and then, for a process that is killed: a scheduler sends SIGTERM when
    the time of a job is over, and a handler of ours would delay that while a framework computes."""

    def __init__(self) -> None:
        self._first_step: "float | None" = None
        self._due = 0.0

    def look(self, now: float) -> bool:
        """Whether it was saved. Called in the sampler's thread."""
        if _state["folder"] is not None or not _state["marks"]:
            return False
        if self._first_step is None:
            self._first_step = now
            self._due = now + FIRST_SAVED
        if now < self._due:
            return False
        before = time.perf_counter()
        with process_record.noted("the profile so far"):
            process_record.write_beside("profile", _found(_state["window"].so_far()))
        took = time.perf_counter() - before
        since = now - self._first_step
        self._due = now + min(max(since, took * SAVING_COST), LONGEST_UNSAVED)
        return True


def result() -> "dict[str, Any]":
    """The profile of this process, which ends the sampling."""
    taken = _state["sampler"]
    taken.stop()
    for watcher in _state["watchers"]:
        with process_record.noted("a last look"):
            watcher.look(taken.now())
    device: "dict[str, Any]" = {}
    with process_record.noted("the profiler of the framework"):
        device = _state["window"].result()
    found = _found(device)
    _forget()
    return found


def _found(device: "dict[str, Any]") -> "dict[str, Any]":
    """What was recorded until now, with the recording of the framework's profiler."""
    taken = _state["sampler"]
    stacks = sorted(taken.stacks, key=taken.stacks.get)
    return {
        "began": _state["began"],
        "seconds": round(taken.now(), 4),
        "cores": usable_cores.usable_cores(),
        "places": taken.places.all(),
        "stacks": [list(stack) for stack in stacks],
        "times": [round(each, 4) for each in taken.times],
        "stack_of": taken.stack_of,
        "thread_seconds": [round(each, 4) for each in taken.thread_seconds],
        "process_seconds": [round(each, 4) for each in taken.process_seconds],
        "marks": [_marks_of(key, each, taken) for key, each in list(_state["marks"].items())],
        "workers": _state["children"].found(),
        "waited": _state["children"].waited,
        "threads_waited": _state["children"].threads_waited,
        "idle": _state["children"].idle,
        "compilations": list(_state["compilations"]),
        "data_adapters": sorted(_state["data_adapters"]),
        "python_calls": [
            {"name": name, "seconds": round(seconds, 4)}
            for name, seconds in sorted(_state["python_calls"].items())
        ],
        "recording": device,
        "gpus": _state["gpus"].result(),
        "cost_seconds": round(taken.spent + _state["gpus"].spent, 4),
    }


def _marks_of(key: str, marks: "Marks", taken: "sampler.Sampler") -> "dict[str, Any]":
    times = [round(each - taken.began, 4) for each in list(marks.times)]
    return {
        "key": key,
        "seen": marks.seen,
        "stride": marks.stride,
        "times": times,
        "busy": round(marks.busy, 4),
        "around": [taken.places.of_the_program(each) for each in list(marks.around)],
    }


def after_fork() -> None:
    """A child has no sampler: threads do not survive a fork."""
    in_a_block = _state.get("folder") is not None
    _forget()
    _state["forked"] = not in_a_block


def _forget() -> None:
    global _state
    if _state["sampler"] is not None:
        _state["sampler"].restore()
        _state["interrupt"].restore()
    # A new one: other threads may still be using what this one has.
    _state = {"sampler": None}
