"""A process started apart from us, watched without blocking, and ended for certain.

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
from whygpu.probes.excerpt import Excerpt
from whygpu.probes.result import LineSplitter

CHUNK = 64 * 1024
LAST_CHUNKS = 32
"""Enough for what can be left in a pipe, and an end to what a survivor may go on writing."""

Words = Sequence[str | PathLike[str]]


class ChildProcess:
    """It speaks in lines on a descriptor of its own; what it prints is kept as an excerpt.

    The owner reads when there is something to read, and calls tend() often.
    """

    dying_seconds = 5.0
    """How long a killed process may take to die before it counts as stuck in the kernel."""

    def __init__(
        self,
        words: Callable[[int], Words],
        *,
        timeout: float,
        environ: Mapping[str, str],
        memory_limit: int | None,
        folder: str | None = None,
    ) -> None:
        """Start the command that `words` makes of its descriptor; OSError when that fails.

        `memory_limit` is what it and its descendants may hold of main memory, in bytes; None where
        nobody knows how much there is.
        """
        self._log = Excerpt()
        self._lines = LineSplitter()
        self._timeout = timeout
        self._timed_out = False
        self._at_work = ""
        """Why it was not finished when its time was up, where it did not stand still."""
        self._killed_at: float | None = None
        self._started = time.monotonic()
        self._deadline = self._started + timeout

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
                pass_fds=(theirs,),
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
        self._watch = Watch(self._process.pid, timeout)
        first_to_be_killed(self._process.pid)
        self._memory = MemoryWatch(self._process.pid, memory_limit)
        self.log_fd = self._process.stdout.fileno()
        os.set_blocking(self.result_fd, False)
        os.set_blocking(self.log_fd, False)

    def take(self, line: bytes) -> None:
        """Something it said on its own descriptor."""
        raise NotImplementedError

    def rest(self) -> float | None:
        """Seconds it may still take to exit when its work is done; None while it is at work."""
        raise NotImplementedError

    def read(self, descriptor: int) -> bool:
        """Take one chunk from one of the two descriptors; False when it has no more for now."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if descriptor == self.log_fd:
            self._log.add(data)
        else:
            for line in self._lines.feed(data):
                self.take(line)
        return bool(data)

    def read_rest(self) -> None:
        """What is still in the pipes."""
        for descriptor in (self.result_fd, self.log_fd):
            for _ in range(LAST_CHUNKS):
                if not self.read(descriptor):
                    break

    def tend(self) -> bool:
        """Enforce the limits; True once there is nothing more to wait for."""
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
        """Kill the process and all that it started."""
        self._killed_at = time.monotonic()
        self._send_kill()

    def _send_kill(self) -> None:
        if self._process.poll() is None:
            kill_all(descendants(self._process.pid))
        # Gone already, or become someone else's: then there is nothing for us to kill.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._orphans.kill()

    def close(self, seconds: float = 0.0) -> None:
        """Leave nothing behind: processes, the zombie (waited for so long), the descriptors."""
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
