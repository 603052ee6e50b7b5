"""One probe's process: started apart from us, watched without blocking, ended for certain."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from whygpu.model.probe import Probe, ProbeEnd, ProbeName
from whygpu.probes.excerpt import Excerpt
from whygpu.probes.result import LineSplitter, Result

HARNESS = (Path(__file__).parent / "scripts" / "harness.py").resolve()
CHUNK = 64 * 1024
LAST_CHUNKS = 32
"""Enough for what can be left in a pipe, and an end to what a survivor may go on writing."""
TEARDOWN_SECONDS = 10.0
"""How long a finished probe may take to exit."""


class ProbeProcess:
    """A running probe. The owner reads when there is something to read, and calls tend() often."""

    dying_seconds = 5.0
    """How long a killed process may take to die before it counts as stuck in the kernel."""

    def __init__(
        self,
        name: ProbeName,
        target_python: str,
        script: Path,
        *,
        timeout: float,
        environ: Mapping[str, str],
    ) -> None:
        """Start it; raises OSError when the interpreter cannot be started."""
        self.name = name
        self.result = Result(name)
        self._log = Excerpt()
        self._lines = LineSplitter()
        self._timeout = timeout
        self._timed_out = False
        self._killed_at: float | None = None
        self._started = time.monotonic()
        self._deadline = self._started + timeout

        self.result_fd, theirs = os.pipe()
        try:
            # -u: what was printed before a crash is not lost. -B: nothing is written into the
            # target, least of all by root.
            self._process = subprocess.Popen(
                [target_python, "-u", "-B", HARNESS, script, str(theirs), str(timeout)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=dict(environ),
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self.result_fd)
            raise
        finally:
            os.close(theirs)
        assert self._process.stdout is not None
        self.log_fd = self._process.stdout.fileno()
        os.set_blocking(self.result_fd, False)
        os.set_blocking(self.log_fd, False)

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
                self.result.take(line)
        return bool(data)

    def tend(self) -> bool:
        """Enforce the limits; True once there is nothing more to wait for."""
        if self._process.poll() is not None:
            return True
        now = time.monotonic()
        if self._killed_at is not None:
            return now > self._killed_at + self.dying_seconds
        if self.result.finished or self.result.exception is not None:
            self._deadline = min(self._deadline, now + TEARDOWN_SECONDS)
        if now > self._deadline:
            self._timed_out = True
            self.kill()
        return False

    def kill(self) -> None:
        """Kill the process and all that it started and that did not leave its group."""
        self._killed_at = time.monotonic()
        self._send_kill()

    def _send_kill(self) -> None:
        # Gone already, or become someone else's: then there is nothing for us to kill.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self, seconds: float = 0.0) -> None:
        """Leave nothing behind: the group, the zombie (waited for so long), the descriptors."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        os.close(self.result_fd)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> Probe:
        """Read what is left, close, and say how it went."""
        seconds = time.monotonic() - self._started
        for descriptor in (self.result_fd, self.log_fd):
            for _ in range(LAST_CHUNKS):
                if not self.read(descriptor):
                    break
        self.close()
        ended, how = self._ending(self._process.returncode)
        return self.result.probe(ended, how, seconds, self._log.lines(), self._log.cut)

    def _ending(self, code: int | None) -> tuple[ProbeEnd, str]:
        stopped = self._description(code)
        if self.result.finished:
            if stopped:
                self.result.note("after the work", stopped)
            return "finished", ""
        if self.result.exception is not None:
            return "exception", self.result.exception
        if self._timed_out:
            return "timed-out", stopped
        if code is not None and code < 0:
            return "signal", stopped
        # Not one word from the harness: the interpreter did not get as far as running it.
        return ("exit" if self.result.begun else "not-started"), f"exit code {code}"

    def _description(self, code: int | None) -> str:
        """How the process itself ended, in words; empty when it simply exited."""
        if self._timed_out:
            limit = f"{self._timeout:g} s"
            stuck = "" if code is not None else f"; process {self._process.pid} cannot be killed"
            return f"did not exit{stuck}" if self.result.finished else limit + stuck
        if code is not None and code < 0:
            return signal_name(-code)
        return f"exit code {code}" if code else ""


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
