"""Keeps Python's garbage collector out of the sampler's thread.

The collector runs in whichever thread makes the object that is one too many, and it calls the
finalizers of the program's objects. In the sampler's thread that has three bad ends:

- In Python 3.11, looking at a thread's frames makes objects. If the collector runs just then, a
  finalizer may let the program go on, its frames are gone when the sampler continues, and the
  process crashes or never ends.
- In Python 3.7 to 3.11, a lock is held while the frames of all threads are listed. If a finalizer
  lets another thread run that needs this lock, both wait for ever.
- The program's finalizers may expect the program's own threads.

So the collector's thresholds are out of reach while the sampler's thread does anything but sleep.
Whether the collector is switched on is left alone: programs ask for that, and change it, far more
often than the thresholds.
"""

import gc
import sys
import time
from _thread import get_ident
from itertools import chain, compress, starmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any

OUT_OF_REACH = 2000000011
"""No program has so many objects, and none chooses this number itself."""
_HOLD = (OUT_OF_REACH, OUT_OF_REACH, OUT_OF_REACH)


class Collector:
    def __init__(self) -> None:
        self._usual = gc.get_threshold()

    def hold(self) -> None:
        """Before the thread starts. From then on, only `frames_after` lets the collector run."""
        self._notice(gc.get_threshold())
        gc.set_threshold(*_HOLD)

    def frames_after(self, seconds: float) -> "dict[int, types.FrameType]":
        """Sleep with the program's thresholds, and then look at the frames of all threads.

        No bytecode runs between these steps. At one, the sampler could lose the interpreter's lock,
        or the collector could run. Reading the thresholds makes a tuple, and in Python 3.11 the
        collector may run whenever an object is made, so it is switched off for that step; the
        program cannot notice, because it does not get the lock before it is on again.
        """
        self._notice(gc.get_threshold())
        was_on: "list[bool]" = []
        steps: "list[Any]" = [
            starmap(gc.set_threshold, [self._usual]),
            starmap(time.sleep, [(seconds,)]),
            map(was_on.append, starmap(gc.isenabled, [()])),
            starmap(gc.disable, [()]),
            starmap(gc.get_threshold, [()]),
            starmap(gc.set_threshold, [_HOLD]),
            starmap(gc.enable, compress([()], was_on)),
            starmap(sys._current_frames, [()]),
        ]
        results = list(chain(*steps))
        self._notice(results[4])
        frames: "dict[int, types.FrameType]" = results.pop()
        # Among them is this function's own, with `results` and `frames`. Such a circle would keep
        # the program's frames, and their variables, until the collector runs: memory that is in use
        # for longer, and objects that the interpreter has to end when its threads cannot any more.
        frames.pop(get_ident(), None)
        return frames

    def restore(self) -> None:
        """Give the program its thresholds back."""
        self._notice(gc.get_threshold())
        gc.set_threshold(*self._usual)

    def _notice(self, found: "tuple[int, int, int]") -> None:
        """The program may set its own thresholds at any time. Ours are not among them, even if the
        program has read them to set one of them, or to set all of them again later."""
        first, second, third = (
            before if now == OUT_OF_REACH else now for before, now in zip(self._usual, found)
        )
        self._usual = first, second, third
