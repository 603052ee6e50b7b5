"""A child process that is watched without blocking and always ended.

It runs other people's code, so its time and its memory have limits.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from os import PathLike

from whygpu.host.orphans import Orphans, kill_all
from whygpu.host.processes import MemoryWatch, descendants, first_to_be_killed
from whygpu.host.processor_time import Watch
from whygpu.host.systems import kill_group
from whygpu.probes.excerpt import Excerpt
from whygpu.probes.result import LineSplitter

CHUNK = 64 * 1024
LAST_CHUNKS = 32
"""Enough to empty a pipe, and a bound for a surviving descendant that continues to write."""

Words = Sequence[str | PathLike[str]]


class ChildProcess:
    """It sends lines over a descriptor of its own; an excerpt of what it prints is kept.

    The owner calls read() when there is something to read, and tend() often.
    """

    dying_seconds = 5.0
    """A killed process that takes longer to die is stuck in the kernel."""

    def __init__(
        self,
        words: Callable[[int], Words],
        *,
        timeout: float,
        environ: Mapping[str, str],
        memory_limit: int | None,
        folder: str | None = None,
        inherited: tuple[int, ...] = (),
    ) -> None:
        """Start the command that `words` makes of its descriptor; raises OSError if that fails.

        `memory_limit`: how much main memory it and its descendants may hold, in bytes; None if the
        memory of the machine is unknown. `inherited`: further descriptors that it gets.
        """
        self._log = Excerpt()
        self._lines = LineSplitter()
        self._timed_out = False
        self._at_work = ""
        """Why it had not finished at the time limit, if it had not hung."""
        self._killed_at: float | None = None

        self._orphans = Orphans()
        self.result_fd, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                words(theirs),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=self._orphans.marked(environ),
                cwd=folder,
                pass_fds=(theirs, *inherited),
                start_new_session=True,
            )
        except BaseException:
            os.close(self.result_fd)
            self._orphans.end()
            raise
        finally:
            os.close(theirs)
        self._orphans.parent = self._process.pid
        assert self._process.stdout is not None
        self._begin(timeout)
        first_to_be_killed(self._process.pid)
        self._memory = MemoryWatch(self._process.pid, memory_limit)
        self.log_fd = self._process.stdout.fileno()
        os.set_blocking(self.result_fd, False)
        os.set_blocking(self.log_fd, False)

    def _begin(self, timeout: float) -> None:
        """Give it this many seconds from now."""
        self._timeout = timeout
        self._started = time.monotonic()
        self._deadline = self._started + timeout
        self._watch = Watch(self._process.pid, timeout)

    def take(self, line: bytes) -> None:
        """Take in a line that it wrote to its own descriptor."""
        raise NotImplementedError

    def hear(self, data: bytes) -> None:
        """Called with what it prints."""

    def rest(self) -> float | None:
        """Seconds it may still take to exit after its work; None while it is working."""
        raise NotImplementedError

    def read(self, descriptor: int) -> bool:
        """Read one chunk from one of the two descriptors; False if there is nothing to read."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if descriptor == self.log_fd:
            self._log.add(data)
            self.hear(data)
        else:
            for line in self._lines.feed(data):
                self.take(line)
        return bool(data)

    def read_rest(self) -> None:
        """Read what is still in the pipes."""
        for descriptor in (self.result_fd, self.log_fd):
            for _ in range(LAST_CHUNKS):
                if not self.read(descriptor):
                    break

    def tend(self) -> bool:
        """Enforce the limits; True once the process has ended or cannot be killed."""
        if self._process.poll() is not None:
            return True
        now = time.monotonic()
        if self._killed_at is not None:
            return now > self._killed_at + self.dying_seconds
        if self._memory.look():
            self.kill()
            return False
        rest = self.rest()
        if rest is not None:
            self._deadline = min(self._deadline, now + rest)
        if now > self._started + self._watch.seconds_before_last_part:
            self._watch.begin_last_part()
        if now > self._deadline:
            self._timed_out = True
            self._at_work = self._watch.at_work()
            self.kill()
        return False

    def kill(self) -> None:
        """Kill the process and everything that it started."""
        self._killed_at = time.monotonic()
        self._send_kill()

    def _send_kill(self) -> None:
        if self._process.poll() is None:
            kill_all(descendants(self._process.pid))
        kill_group(self._process)
        self._orphans.kill()

    def close(self, seconds: float = 0.0) -> None:
        """Kill what is left, wait this long for the zombie, and close the descriptors."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._orphans.end()
        os.close(self.result_fd)
        assert self._process.stdout is not None
        self._process.stdout.close()


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
