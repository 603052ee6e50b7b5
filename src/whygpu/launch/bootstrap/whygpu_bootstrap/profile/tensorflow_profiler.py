"""TensorFlow's own profiler, for a few steps in the middle of the program.

A step that takes its data from tf.data inside a tf.function, as Keras does, looks like one call
from Python. The profiler shows how long that call waited for data.
"""

import os
import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIRST_STEP = recorder.ENOUGH_STEPS
LONGEST = 2.0
MOST_STEPS = 60
LARGEST_FILE = 16 << 20


class Window:
    """Starts the profiler once, after the first steps, and stops it soon after."""

    def __init__(self, tensorflow: "Any") -> None:
        self._profiler: "Any" = sys.modules.get("tensorflow.python.profiler.profiler_v2")
        self._state = "waiting" if self._profiler is not None else "done"
        self._until = (0, 0.0)
        self._folder = recorder.file_beside_record("xplane")
        if self._profiler is not None:
            self._yield_to_program(tensorflow)

    def between(self, steps: int, now: float) -> None:
        if self._state == "waiting" and steps >= FIRST_STEP:
            self._start()
            self._until = (steps + MOST_STEPS, now + LONGEST)
        elif self._state == "running" and (steps >= self._until[0] or now >= self._until[1]):
            self._stop()

    def _start(self) -> None:
        self._state = "done"
        with process_record.noted("TensorFlow's profiler"):
            self._profiler.start(self._folder)
            self._state = "running"

    def _stop(self) -> None:
        self._state = "done"
        with process_record.noted("TensorFlow's profiler"):
            self._profiler.stop()

    def _yield_to_program(self, tensorflow: "Any") -> None:
        """There is one profiler in a process: if the program starts it, ours stops first."""
        experimental: "Any" = getattr(getattr(tensorflow, "profiler", None), "experimental", None)
        original = getattr(experimental, "start", None)
        if original is None:
            self._state = "done"
            return

        def start(*arguments: "Any", **named: "Any") -> "Any":
            if self._state == "running":
                self._stop()
            self._state = "done"
            return original(*arguments, **named)

        start.__doc__ = original.__doc__
        experimental.start = start

    def result(self) -> "list[str]":
        """The files that it has written."""
        if self._state == "running":
            self._stop()
        found = []
        for folder, _, names in os.walk(self._folder):
            found += [os.path.join(folder, name) for name in names if name.endswith(".xplane.pb")]
        small = [path for path in found if os.path.getsize(path) <= LARGEST_FILE]
        if len(small) < len(found):
            process_record.note("the profile of TensorFlow is too large to read")
        return small[:1]
