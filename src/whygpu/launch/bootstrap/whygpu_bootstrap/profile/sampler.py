"""Samples the stack of one thread, from a thread of its own, for as long as the process runs.

It wakes every few milliseconds at first, and less often when there are enough samples to judge.
Its cost is measured: if a sample takes too large a part of the time between two samples, it wakes
less often. The number of samples is bounded: when there are too many, every other one is dropped,
and from then on it wakes half as often.

When it wakes has to be independent of what the program does, or some of that is sampled too often:

- The times between samples are random. Otherwise the samples of steps that take as long would all
  show the same part of a step.
- A thread that needs the interpreter's lock sleeps for the switch interval, and only then asks the
  thread that holds it to let go. On a busy machine it may get a core much later. By then the
  program may have reached a call that gives up the lock by itself, so that such calls would be seen
  too often, and Python code too rarely. So the interval is short while the sampler sleeps. If it
  was even shorter, the sampler would keep the program from letting go.

The program must not notice the thread. Programs wait for all threads that the module threading
knows, count them, and set functions there that trace each of them. So it is a thread that only the
interpreter knows, and it never asks threading for the current thread, which would add it.
"""

import _thread
import os
import random
import signal
import sys
import threading
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import code_places, held_collector

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable

SHORTEST_PERIOD = 0.005
HURRIED_PERIOD = 0.002
"""While the framework's profiler runs, which is short, and just before."""
SETTLED_PERIOD = 0.04
ENOUGH_SAMPLES = 1000
"""After so many since the last start of the training, the period is the settled one."""
MOST_SAMPLES = 12000
SWITCH_INTERVAL = 0.0005
"""A thread that computes in Python lets others run only after an interval of 5 ms by default. Until
then the sampler would wait, and see the program only where it lets others run: in calls of C. While
a sample is taken, the program waits for this long before it asks for the lock."""
ASKING_INTERVAL = 0.0001
"""The switch interval while the sampler sleeps, unless other threads compete for the lock."""
IDLE_THREAD = 0.0002
"""Seconds of processor time between two samples: a thread that only waits takes less."""
LONGEST_PERIOD = 0.1
LARGEST_COST = 0.02
"""The share of the time that the sampler's thread may take, until there are enough samples."""
SETTLED_COST = 0.0015
"""And after that. The program loses up to twice as much again: it gives up the interpreter's lock,
and continues with colder caches. Altogether it is less than 1 %."""
LEAST_OF_PERIOD = 0.5
"""A random time between two samples is this part of the period, or up to as much longer."""
DEEPEST = 200
LONGEST_WAIT = 0.5
THREAD_CLOCK = 6
"""In the number of a clock of Linux: the processor time of one thread, by the scheduler."""


class Sampler:
    """`between` is called in the sampler's thread, about ten times a second. It returns whether it
    did something that it does rarely: how often to sample does not depend on that."""

    def __init__(self, between: "Callable[[float], bool | None]") -> None:
        self.thread = threading.main_thread().ident or 0
        """The thread that is sampled: the main one, until another one makes steps."""
        self._native = os.getpid()
        """The number by which the kernel knows that thread; 0 if Python cannot tell."""
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
        self._collector = held_collector.Collector()
        self._hurried = False
        self._usual = (0.0, 0)
        """Seconds, and number, of the samples that met no new place."""
        self._random = random.Random()
        self._settles_at = ENOUGH_SAMPLES
        self._others: "dict[int, float]" = {}
        """The processor time of the other threads of Python at the last sample."""
        self._stopping = False
        self._ended = _thread.allocate_lock()
        """Held while the sampler's thread runs."""
        self.ident = 0
        """Of the sampler's own thread."""

    def start(self) -> None:
        self.began = time.perf_counter()
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, SWITCH_INTERVAL))
        self._collector.hold()
        self._ended.acquire()
        try:
            self.ident = _thread.start_new_thread(self._run, ())
        except RuntimeError:
            # The process may have no more threads.
            self._ended.release()
            self.restore()
            raise

    def stop(self) -> None:
        self._stopping = True
        if self._ended.acquire(True, LONGEST_WAIT):
            self._ended.release()
        self.restore()

    def restore(self) -> None:
        """Give the program its own switch interval and thresholds of the collector back."""
        self._collector.restore()
        if _is_ours(sys.getswitchinterval()):
            sys.setswitchinterval(self._interval)

    def hurry(self, hurried: bool) -> None:
        """Sample as often as possible for a while, whatever it costs."""
        self._hurried = hurried

    def now(self) -> float:
        """Seconds since the sampling began."""
        return time.perf_counter() - self.began

    def _run(self) -> None:
        try:
            with process_record.noted("sampling the program"):
                _block_signals()
                try:
                    self._sample_until_stopped()
                finally:
                    self.restore()
        finally:
            self._ended.release()

    def _sample_until_stopped(self) -> None:
        due = 0.0
        # Waking up, and what is done between samples, is a part of the cost. Python 3.6 cannot
        # tell a thread's own time: there, the rest of it is not counted.
        clock = getattr(time, "thread_time", time.perf_counter)
        spent = clock()
        while True:
            frame = self._sleep()
            if self._stopping:
                return
            if clock is time.perf_counter:
                spent = clock()
            before = time.perf_counter()
            known = len(self.places.all())
            self._sample(before - self.began, frame)
            del frame
            rare = False
            if before >= due:
                rare = bool(self._between(before - self.began))
                due = before + 0.1
            so_far = clock()
            self.spent += so_far - spent
            if len(self.places.all()) == known and not rare:
                # A new place is examined once: later samples do not cost that.
                self._usual = (self._usual[0] + so_far - spent, self._usual[1] + 1)
            spent = so_far

    def _sleep(self) -> "types.FrameType | None":
        """Sleep until the next sample; then the innermost frame of the program's thread."""
        period = self._period() * self._random.uniform(LEAST_OF_PERIOD, 2 - LEAST_OF_PERIOD)
        if _is_ours(sys.getswitchinterval()):
            sys.setswitchinterval(SWITCH_INTERVAL if self._competes() else ASKING_INTERVAL)
        frames = self._collector.frames_after(period)
        if _is_ours(sys.getswitchinterval()):
            sys.setswitchinterval(SWITCH_INTERVAL)
        return frames.get(self.thread)

    def _competes(self) -> bool:
        """Whether other threads of the program compute: then a short interval would slow them."""
        known = self._others
        natives = [getattr(thread, "native_id", None) for thread in threading.enumerate()]
        self._others = {
            native: _thread_seconds(native)
            for native in natives
            if native is not None and native != self._native
        }
        return any(
            seconds - known.get(thread, 0.0) > IDLE_THREAD
            for thread, seconds in self._others.items()
        )

    def follow(self) -> None:
        """Sample the thread that calls this."""
        self.thread = threading.get_ident()
        if self.thread == threading.main_thread().ident:
            self._native = os.getpid()
        else:
            # New in Python 3.8.
            native = getattr(threading, "get_native_id", None)
            self._native = native() if native is not None else 0

    def settle_later(self) -> None:
        """The training has begun: what was sampled before says nothing about it."""
        self._settles_at = self.taken + ENOUGH_SAMPLES

    def _period(self) -> float:
        if self._hurried:
            return HURRIED_PERIOD
        spent, count = self._usual
        cost = spent / count if count else 0.0
        if self.taken < self._settles_at:
            wanted = max(self._base, cost / LARGEST_COST)
        else:
            wanted = max(self._base, cost / SETTLED_COST, SETTLED_PERIOD)
        return min(wanted, LONGEST_PERIOD)

    def _sample(self, now: float, frame: "types.FrameType | None") -> None:
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
        self.thread_seconds.append(_thread_seconds(self._native))
        self.process_seconds.append(time.process_time())
        self.taken += 1
        if len(self.times) >= MOST_SAMPLES:
            for column in (self.times, self.stack_of, self.thread_seconds, self.process_seconds):
                del column[::2]
            self._base *= 2
            self._forget_unused_stacks()

    def _forget_unused_stacks(self) -> None:
        """Of a program whose stack is hardly ever the same, they would grow without end."""
        stacks = sorted(self.stacks, key=self.stacks.__getitem__)
        used = {number: at for at, number in enumerate(sorted(set(self.stack_of)))}
        self.stacks = {stacks[number]: at for number, at in used.items()}
        self.stack_of = [used[number] for number in self.stack_of]


def _block_signals() -> None:
    """Signals are for the program's threads: one of them may wait for a signal that it blocks."""
    if hasattr(signal, "pthread_sigmask"):
        valid = signal.valid_signals() if hasattr(signal, "valid_signals") else range(1, 32)
        signal.pthread_sigmask(signal.SIG_BLOCK, valid)


def _is_ours(interval: float) -> bool:
    """Otherwise the program has set its own switch interval, which stays."""
    return any(abs(interval - each) < 1e-9 for each in (SWITCH_INTERVAL, ASKING_INTERVAL))


def _thread_seconds(native: int) -> float:
    """The processor time of a thread; 0 if it has ended, or is not known.

    The number of its clock is made as the C library makes it. Python can ask that library too, but
    only while the thread lives: it looks into the memory of the thread, and would crash later.
    """
    if not native or not sys.platform.startswith("linux"):
        return 0.0
    try:
        return time.clock_gettime((~native << 3) | THREAD_CLOCK)
    except OSError:
        return 0.0
