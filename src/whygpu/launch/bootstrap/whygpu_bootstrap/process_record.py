"""The record of one process: which frameworks it had, which devices they used, what went wrong.

It is written when the process ends: at exit, before os._exit and before exec. A signal such as
SIGTERM ends a process without a word, and a handler of ours would delay that while a framework
computes. So the record is also written while the process runs: when a framework is imported, when
it starts its devices, with every note, and by the thread that watches the memory of a GPU.
"""

import _thread
import atexit
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

LONGEST_NOTE = 500
LONGEST_WAIT = 1.0
"""Seconds to wait at the end for a thread that is writing."""
MOST_NOTES = 100

_state: "dict[str, Any]" = {"folder": None}


def open_in(folder: str) -> None:
    """Begin this process's record, to be written into the folder."""
    _begin(folder)
    _watch_ends()


def _begin(folder: str) -> None:
    _state.clear()
    _state.update(
        folder=folder,
        pid=os.getpid(),
        name="%d-%d.json" % (os.getpid(), time.time() * 1000000),
        frameworks={},
        calls=[],
        readings={},
        notes=[],
        questions={},
        tracers={},
        memory=None,
        profile=None,
        profiled={},
        imported=None,
        written=False,
        writing=_thread.allocate_lock(),
    )


class noted:  # noqa: N801
    """Turns an exception inside the block into a note. Ctrl-C and exit are passed on."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> "noted":
        return self

    def __exit__(self, kind: "Any", error: "Any", trace: "Any") -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        place = ""
        while trace is not None:
            code = trace.tb_frame.f_code
            # With its folder: several of our folders have a torch.py.
            file = "/".join(code.co_filename.split(os.sep)[-2:])
            place = "%s:%d" % (file, trace.tb_lineno)
            trace = trace.tb_next
        note("%s failed at %s: %s: %s" % (self.what, place, kind.__name__, error))
        return True


def is_open() -> bool:
    """Whether this process writes a record."""
    return _state["folder"] is not None


def note(text: str) -> None:
    """Something that the reader of the report should know."""
    notes = _state.get("notes")
    if notes is not None and len(notes) < MOST_NOTES and text not in notes:
        notes.append(text[:LONGEST_NOTE])
        if _state["frameworks"]:
            _write_so_far(())


def add_call(entry: "dict[str, Any]") -> None:
    """A call of the plan; its entry says what became of it (policy/attempts.py)."""
    if is_open():
        _state["calls"].append(entry)


def seen(framework: str, version: str) -> None:
    """The program has imported a framework."""
    if _state["folder"] is None:
        return
    _state["frameworks"].setdefault(framework, {"version": version})
    _state["imported"] = time.time()
    # atexit calls the last registered first: before the framework shuts its devices down.
    atexit.unregister(finish)
    atexit.register(finish)
    _write_so_far(())


def ask_at_end(framework: str, devices: "Any", module: "Any") -> None:
    """Ask for the framework's devices at the end.

    `devices` has `used(module) -> dict`, which starts nothing and goes into the framework's entry,
    `gpu_started(module)`, and `after_fork(module)`, called in a child.
    """
    if _state["folder"] is not None:
        _state["questions"][framework] = (devices, module)


def readings_at_end(framework: str, take: "Callable[[], list[dict[str, Any]]]") -> None:
    """Call take() at the end for what the framework reports of the policy (policy/readings.py)."""
    if is_open():
        _state["readings"][framework] = take


def trace_at_end(framework: str, tracer: "Any") -> None:
    """Ask the tracer for its result() at the end."""
    if _state["folder"] is not None:
        _state["tracers"][framework] = tracer


def memory_at_end(watch: "Any") -> None:
    """Ask for the process's memory at the end: watch has `result()` and `after_fork()`."""
    _state["memory"] = watch


def profile_at_end(recorder: "Any") -> None:
    """Ask for the profile of the process at the end: recorder has `result()` and `after_fork()`."""
    _state["profile"] = recorder


def beside(name: str) -> str:
    """The path of a file that is read together with this record."""
    # The number of the process is not enough: it stays the same when the process calls exec.
    return os.path.join(_state["folder"], "%s.%s" % (_state["name"].partition(".")[0], name))


def write_beside(name: str, content: "dict[str, Any]") -> None:
    """Write a file of JSON that is read if this record does not get complete."""
    import json

    path = beside(name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        # json.dump() would write it in Python, which takes twice as long.
        file.write(json.dumps(content))
    os.rename(path + ".part", path)


def used_so_far(framework: str, found: "dict[str, Any]") -> None:
    """Record what a framework has used up to now."""
    entry = _state.get("frameworks", {}).get(framework)
    if entry is not None:
        entry.update(found)
        _write_so_far(())


def ask_so_far() -> None:
    """Ask every framework what it has used up to now, and record the answers."""
    if is_open():
        _write_so_far(list(_state["questions"].items()))


def _write_so_far(questions: "Any") -> None:
    lock = _state["writing"]
    if not lock.acquire(False):
        # Another thread is writing, or this one: a failure while it writes becomes a note.
        return
    try:
        with noted("the record so far"):
            if not _state["written"] and _state["pid"] == os.getpid():
                _ask(questions, so_far=True)
                _write(complete=False)
    finally:
        lock.release()


def _ask(questions: "Any", so_far: bool = False) -> None:
    for framework, (devices, module) in questions:
        with noted("asking %s for its devices" % framework):
            found = devices.used(module)
            if so_far and devices.gpu_started(module) and not _has_gpu(found):
                # It may use the GPU the next moment: until then, nothing is known.
                found = {"used": []}
            _state["frameworks"][framework].update(found)


def _has_gpu(found: "dict[str, Any]") -> bool:
    return any(each["device"].startswith("gpu") for each in found.get("used", ()))


def finish() -> None:
    """Ask every framework what it has used, and write the record. The second call does nothing."""
    if _state["folder"] is None or _state["written"]:
        return
    if _state["pid"] != os.getpid():
        # A forked child, on a Python without os.register_at_fork.
        _after_fork()
    ended = time.time()
    _stop_writing_so_far()
    if not _state["frameworks"] and not _state["notes"]:
        _tidy()
        return
    if _state["profile"] is not None:
        # First, so that what we do at the end is not sampled. It can be asked once; the record may
        # be written again, after an exec that failed.
        recorder, _state["profile"] = _state["profile"], None
        with noted("the profile of the process"):
            _state["profiled"] = recorder.result()
    memory = {}
    if _state["memory"] is not None:
        with noted("the memory of the process"):
            memory = _state["memory"].result()
    _ask(list(_state["questions"].items()))
    with noted("the record"):
        _write(complete=True, ended=ended, memory=memory, profile=_state["profiled"])
    _tidy()


def _stop_writing_so_far() -> None:
    lock = _state["writing"]
    held = lock.acquire(True, LONGEST_WAIT)
    _state["written"] = True
    if held:
        lock.release()


def _traces() -> "dict[str, Any]":
    results = {}
    for framework, tracer in list(_state["tracers"].items()):
        with noted("the trace of %s" % framework):
            results[framework] = tracer.result()
    return results


def _readings() -> "Any":
    found = []
    for framework, take in list(_state["readings"].items()):
        with noted("what %s reports of the policy" % framework):
            found += take()
    return found


def _write(
    complete: bool, ended: "Any" = None, memory: "Any" = None, profile: "Any" = None
) -> None:
    # Imported late: a program without a framework may have a module `json` of its own.
    import json

    traces = _traces() if complete else {}
    content = {
        "pid": os.getpid(),
        "complete": complete,
        "frameworks": _state["frameworks"],
        "calls": _state["calls"],
        "readings": _readings() if complete else [],
        "trace": traces,
        "imported": _state["imported"],
        "ended": ended,
        "memory": memory or {},
        "profile": profile or {},
        "notes": _state["notes"],
    }
    path = os.path.join(_state["folder"], _state["name"])
    part = path + (".part" if complete else ".so-far")
    with open(part, "w", encoding="utf-8") as file:
        file.write(json.dumps(content))
    if complete or not _state["written"]:
        os.rename(part, path)


def _tidy() -> None:
    """Remove the folder if the process that would have read and removed it was killed."""
    with noted("looking for whygpu"):
        from whygpu_bootstrap import abandoned_folder

        abandoned_folder.remove_if_abandoned(os.path.dirname(_state["folder"]))


def _after_fork() -> None:
    """Begin a record for the child. What its parent has started cannot be asked in the child."""
    parent = dict(_state)
    if parent["folder"] is None:
        return
    _begin(parent["folder"])
    _state["frameworks"] = {
        name: {"version": entry["version"]} for name, entry in parent["frameworks"].items()
    }
    # What the calls have changed is inherited.
    _state["calls"] = parent["calls"]
    _state["readings"] = parent["readings"]
    for framework, (devices, module) in parent["questions"].items():
        with noted("asking %s after a fork" % framework):
            devices.after_fork(module)
            _state["questions"][framework] = (devices, module)
    if parent["memory"] is not None:
        with noted("watching the memory after a fork"):
            parent["memory"].after_fork()
            _state["memory"] = parent["memory"]
    if parent["profile"] is not None:
        with noted("the profile after a fork"):
            parent["profile"].after_fork()
    for framework, tracer in parent["tracers"].items():
        after_fork = getattr(tracer, "after_fork", None)
        if after_fork is not None:
            with noted("the trace of %s after a fork" % framework):
                after_fork()
                _state["tracers"][framework] = tracer


def _watch_ends() -> None:
    atexit.register(finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    os._exit = _finishing_first(os._exit)
    # The other exec functions of os call one of these two.
    os.execv = _finishing_first(os.execv, _can_be_executed)
    os.execve = _finishing_first(os.execve, _can_be_executed)


def _can_be_executed(path: "Any", *arguments: "Any", **named: "Any") -> bool:
    """os.execvp tries each folder of PATH: most of them do not have the program."""
    return isinstance(path, int) or os.access(path, os.X_OK)


def _finishing_first(
    end: "Callable[..., Any]", will_end: "Callable[..., bool] | None" = None
) -> "Callable[..., Any]":
    def wrapper(*arguments: "Any", **options: "Any") -> "Any":
        with noted("the record before %s" % end.__name__):
            if will_end is None or will_end(*arguments, **options):
                finish()
        # If exec fails, the process goes on, and writes the record again at its end.
        _state["written"] = False
        return end(*arguments, **options)

    wrapper.__name__ = end.__name__
    wrapper.__doc__ = end.__doc__
    return wrapper
