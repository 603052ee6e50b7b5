"""Runs the profiler of a framework once, for a second or two of steps after the first ones.

The sampler's thread notices that it is time. The profiler is started and stopped in the thread that
trains, at the end of a step: PyTorch keeps a part of its profiler's state for each thread, and
between two steps nothing is being captured or launched. The seconds that this takes are recorded,
so that they are not counted as the program's.
"""

import ctypes
import os
import threading

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

FIRST_STEP = 10
"""After that many steps, what a framework does only once has been done."""
SHORTEST = 1.0
"""Seconds: about 400 samples of the stack."""
FEWEST_STEPS = 10
LONGEST = 3.0
OTHER_TOOL = "CUDA_INJECTION64_PATH"
"""Set by Nsight and the like. CUPTI serves one tool at a time."""
WITHOUT_STEP = 5.0
"""Seconds: if no step ends for so much longer, the profiler stops where the program is."""

_callback_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Window:
    """One recording of one profiler.

    A profiler has `ready()`, `safe()`, `wait()`, `start()`, `mark()`, `stop()`, `files()`, a `kind`
    and a `name`. `wait()` ends when the GPU has done all that was launched, so that the recording
    has all kernels of its steps and no others. `saves_quickly` says whether `files()` may be called
    while the program trains.
    """

    def __init__(self, now: "Callable[[], float]", first_step: int = FIRST_STEP) -> None:
        self.due = ""
        """What the end of a step should do: "start" or "stop" it, by calling switch()."""
        self._now = now
        self._first_step = first_step
        self._profilers: "dict[str, Any]" = {}
        self._chosen: "Any" = None
        self._state = "waiting"
        self._begun = (0, 0.0)
        self._wanted = float("inf")
        """When it was first due to start."""
        self._steps = 0
        self._thread = 0
        self._call = _callback_type(self._in_main_thread)
        self._record: "dict[str, Any]" = {"pauses": [], "marks": []}

    def add(self, family: str, profiler: "Any") -> None:
        self._profilers[family] = profiler

    def is_near(self) -> bool:
        """Whether the recording runs, or should start at the end of this step: from then on the
        stack is sampled often, so that the recording does not begin before the samples do.

        A step that is very long, or in which the profiler cannot start, is not worth that cost."""
        if self._state in ("starting", "running"):
            return True
        return self.due == "start" and self._now() - self._wanted < LONGEST

    def look(self, family: str, steps: int, now: float) -> None:
        """Is it time to start, or to stop? Called about ten times a second."""
        if self._state == "waiting" and os.environ.get(OTHER_TOOL):
            self._state = "done"
            self._record["problem"] = "another tool profiles CUDA already (%s is set)" % OTHER_TOOL
        if self._state == "waiting" and steps >= self._first_step:
            self._chosen = self._profilers.get(family)
            self.due = "start" if self._chosen is not None and self._chosen.ready() else ""
            if self.due:
                self._wanted = min(self._wanted, now)
        elif self._state == "running":
            elapsed = now - self._begun[1]
            enough = steps >= self._begun[0] + FEWEST_STEPS and elapsed >= SHORTEST
            self.due = "stop" if enough or elapsed >= LONGEST else ""
            if elapsed >= LONGEST + WITHOUT_STEP:
                # No step ends: the program evaluates, or its training is over.
                ctypes.pythonapi.Py_AddPendingCall(self._call, None)
        self._steps = steps

    def switch(self) -> None:
        """Start or stop, in the thread that trains."""
        if self._chosen is None or not self._chosen.safe():
            return
        wanted, self.due = self.due, ""
        if wanted == "start" and self._state == "waiting":
            self._start()
        elif wanted == "stop" and self._state == "running":
            self._stop()

    def _in_main_thread(self, _: "Any") -> int:
        """The interpreter calls it, as it calls signal handlers."""
        if threading.get_ident() == self._thread:
            with process_record.noted("stopping the framework's profiler"):
                self.switch()
        return 0

    def give_way(self, what: str) -> None:
        """The program starts a profiler of its own, and there can be only one."""
        if self._state == "running":
            self._stop()
        elif self._state == "waiting":
            self._state = "done"
            self._record["problem"] = "the program uses %s itself" % what
        self.due = ""

    def _start(self) -> None:
        self._state = "starting"
        before = self._now()
        self._thread = threading.get_ident()
        try:
            self._chosen.wait()
            self._chosen.start()
            self._mark()
            self._state = "running"
        except Exception as error:
            self._fail(error)
            return
        finally:
            if self._state == "starting":
                self._state = "done"
        self._begun = (self._steps, self._now())
        self._pause(before)
        self._record["begin"] = self._begun[1]

    def _stop(self) -> None:
        self._state = "done"
        before = self._now()
        self._record["end"] = before
        try:
            self._chosen.wait()
            self._mark()
            self._chosen.stop()
        except Exception as error:
            self._fail(error)
        self._pause(before)

    def _fail(self, error: Exception) -> None:
        self._record["problem"] = "%s: %s" % (type(error).__name__, str(error)[:300])

    def _mark(self) -> None:
        """Something that the profiler records too, and that shows how the clocks are related."""
        before = self._now()
        self._chosen.mark()
        self._record["marks"].append([before, self._now()])

    def _pause(self, before: float) -> None:
        self._record["pauses"].append([before, self._now()])

    def so_far(self) -> "dict[str, Any]":
        """The same as result() for a recording that has ended, in any thread; empty until then."""
        if self._state != "done":
            return {}
        found = self._found()
        if "kind" in found and not self._chosen.saves_quickly:
            found["problem"] = "the program was killed before %s was saved" % self._chosen.name
        elif "kind" in found:
            self._add_files(found)
        return found

    def result(self) -> "dict[str, Any]":
        """What was recorded, with the files of the profiler; empty if nothing was."""
        if self._state == "running":
            self._stop()
        found = self._found()
        if "kind" in found:
            self._add_files(found)
        return found

    def _found(self) -> "dict[str, Any]":
        """Without files. With its kind if there is something to save."""
        if self._chosen is None and "problem" not in self._record:
            return {}
        found = dict(self._record)
        if "begin" in found and "end" in found:
            found["kind"] = self._chosen.kind
            found["profiler"] = self._chosen.name
        return found

    def _add_files(self, found: "dict[str, Any]") -> None:
        with process_record.noted("the profile of the GPU"):
            found["files"] = self._chosen.files()


def giving_way(original: "Any", window: "Callable[[], Any]", what: str) -> "Any":
    """The function that starts the program's own profiler, with ours out of its way."""

    def start(*arguments: "Any", **named: "Any") -> "Any":
        running = window()
        if running is not None:
            with process_record.noted("giving way to the program's profiler"):
                running.give_way(what)
        return original(*arguments, **named)

    start.__name__ = getattr(original, "__name__", "start")
    start.__doc__ = original.__doc__
    return start
