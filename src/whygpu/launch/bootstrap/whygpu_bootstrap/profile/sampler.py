"""Samples the stack of one thread, from a thread of its own, for as long as the process runs.

It wakes every few milliseconds. Its cost is measured: if a sample takes more than a hundredth of
the time between two samples, it wakes less often. The number of samples is bounded: when there are
too many, every other one is dropped, and from then on it wakes half as often.
"""

import sys
import threading
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import code_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

SHORTEST_PERIOD = 0.005
MOST_SAMPLES = 12000
SWITCH_INTERVAL = 0.0005
"""A thread that computes in Python lets others run only after an interval of 5 ms by default. Until
then the sampler would wait, and see the program only where it lets others run: in calls of C."""
LARGEST_COST = 0.01
"""The share of the time that sampling may take."""
DEEPEST = 200
LONGEST_WAIT = 0.5


class Sampler:
    """`between` is called in the sampler's thread, about ten times a second."""

    def __init__(self, between: "Callable[[float], None]") -> None:
        self.thread = threading.main_thread().ident
        """The thread that is sampled: the main one, until another one makes steps."""
        self.places = code_places.Places()
        self.stacks: "dict[Any, int]" = {}
        self.times: "list[float]" = []
        self.stack_of: "list[int]" = []
        self.thread_seconds: "list[float]" = []
        self.process_seconds: "list[float]" = []
        self.spent = 0.0
        self.taken = 0
        self._base = SHORTEST_PERIOD
        self._between = between
        self._stopping = False
        self._running = threading.Thread(target=self._run, name="whygpu-profile")
        self._running.daemon = True

    def start(self) -> None:
        self.began = time.perf_counter()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, SWITCH_INTERVAL))
        self._running.start()

    def stop(self) -> None:
        self._stopping = True
        if abs(sys.getswitchinterval() - SWITCH_INTERVAL) < 1e-9:
            # Otherwise the program has set its own.
            sys.setswitchinterval(self._interval)
        if threading.current_thread() is not self._running:
            self._running.join(LONGEST_WAIT)

    def now(self) -> float:
        """Seconds since the sampling began."""
        return time.perf_counter() - self.began

    def _run(self) -> None:
        with process_record.noted("sampling the program"):
            due = 0.0
            while not self._stopping:
                time.sleep(self._period())
                if self._stopping:
                    return
                before = time.perf_counter()
                self._sample(before - self.began)
                self.spent += time.perf_counter() - before
                if before >= due:
                    self._between(before - self.began)
                    due = before + 0.1

    def _period(self) -> float:
        cost = self.spent / self.taken if self.taken else 0.0
        return max(self._base, cost / LARGEST_COST)

    def _sample(self, now: float) -> None:
        frame = sys._current_frames().get(self.thread or 0)
        stack: "list[int]" = []
        leaf = True
        while frame is not None and len(stack) < DEEPEST:
            stack.append(self.places.of(frame, leaf))
            frame = frame.f_back
            leaf = False
        del frame
        number = self.stacks.setdefault(tuple(stack), len(self.stacks))
        self.times.append(now)
        self.stack_of.append(number)
        self.thread_seconds.append(_thread_seconds(self.thread))
        self.process_seconds.append(time.process_time())
        self.taken += 1
        if len(self.times) >= MOST_SAMPLES:
            for column in (self.times, self.stack_of, self.thread_seconds, self.process_seconds):
                del column[::2]
            self._base *= 2


def _thread_seconds(thread: "Any") -> float:
    """The processor time of a thread; 0 if this Python cannot tell (before 3.7)."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None:
        return 0.0
    try:
        return time.clock_gettime(clock_of(thread))
    except OSError:
        # The thread has ended.
        return 0.0
