"""The process of one probe, or of two that share it, and the results of both."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from whygpu.model.probe import Probe, ProbeEnd, ProbeName
from whygpu.model.units import size_text
from whygpu.probes.child import ChildProcess, Words, signal_name
from whygpu.probes.result import Result

HARNESS = (Path(__file__).parent / "scripts" / "harness.py").resolve()
TEARDOWN_SECONDS = 10.0
"""How long a process may take to exit after its probe has finished."""
AFTER_THE_WORK = "after the work"


class ProbeProcess(ChildProcess):
    """A running probe."""

    def __init__(
        self,
        name: ProbeName,
        target_python: str,
        script: Path,
        *,
        timeout: float,
        environ: Mapping[str, str],
        memory_limit: int | None,
        shared: bool = False,
    ) -> None:
        """Start it; raises OSError if the interpreter cannot be started.

        `shared`: when its probe has finished, the process waits for run_next() or let_go().
        """
        self.name = name
        self.result = Result(name)
        self.earlier: Probe | None = None
        """The first of two probes, once the second has begun."""
        theirs: tuple[int, ...] = ()
        self._requests: int | None = None
        if shared:
            end, self._requests = os.pipe()
            theirs = (end,)

        def words(descriptor: int) -> Words:
            # -u: what was printed before a crash is not lost. -B: nothing is written into the
            # target, least of all by root.
            numbers = map(str, (descriptor, timeout, *theirs))
            return [target_python, "-u", "-B", HARNESS, script, *numbers]

        try:
            super().__init__(
                words,
                timeout=timeout,
                environ=environ,
                memory_limit=memory_limit,
                inherited=theirs,
            )
        except BaseException:
            self.let_go()
            raise
        finally:
            for each in theirs:
                os.close(each)

    def take(self, line: bytes) -> None:
        self.result.take(line)

    def rest(self) -> float | None:
        done = self.result.finished or self.result.exception is not None
        return TEARDOWN_SECONDS if done else None

    @property
    def seconds(self) -> float:
        """Since the current probe began."""
        return time.monotonic() - self._started

    def finished_probe(self) -> Probe:
        """The result of a probe that has finished in a process that continues."""
        self.read_rest()
        return self._probe("finished", "")

    def run_next(
        self, name: ProbeName, script: Path, *, timeout: float, environ: Mapping[str, str]
    ) -> None:
        """Run another probe in this process, with further variables, now that the first is done.

        Its log begins with what the first has printed: a process of its own would print that too.
        """
        # Nothing of the second probe is in the pipe yet: the harness waits for the request.
        self.earlier = self.finished_probe()
        self.name, self.result = name, Result(name)
        self._begin(timeout)
        request = {"script": str(script), "seconds": timeout, "environ": dict(environ)}
        assert self._requests is not None
        # If the process has died meanwhile, its end tells.
        with suppress(BrokenPipeError):
            os.write(self._requests, json.dumps(request).encode() + b"\n")
        self.let_go()

    def let_go(self) -> None:
        """Send no further request, so that the process exits after its current probe."""
        if self._requests is not None:
            os.close(self._requests)
            self._requests = None

    def close(self, seconds: float = 0.0) -> None:
        self.let_go()
        super().close(seconds)

    def end(self) -> Probe:
        """Read what is left, close, and return the result of the current probe."""
        self.read_rest()
        self.close()
        stopped = self._description(self._process.returncode)
        if self.result.finished and stopped:
            self.result.note(AFTER_THE_WORK, stopped)
            if self.earlier is not None:
                facts = (*self.earlier.facts, (AFTER_THE_WORK, stopped))
                self.earlier = self.earlier._replace(facts=facts)
        ended, how = self._ending(self._process.returncode, stopped)
        return self._probe(ended, how)

    def _probe(self, ended: ProbeEnd, how: str) -> Probe:
        return self.result.probe(ended, how, self.seconds, self._log.lines(), self._log.cut)

    def _ending(self, code: int | None, stopped: str) -> tuple[ProbeEnd, str]:
        if self.result.finished:
            return "finished", ""
        if self.result.exception is not None:
            return "exception", self.result.exception
        if self._memory.exceeded:
            return "over-limit", stopped
        if self._timed_out and self._at_work:
            return "cut-short", self._at_work
        if self._timed_out:
            return "timed-out", stopped
        if code is not None and code < 0:
            return "signal", stopped
        # Without one message from the harness, the interpreter did not get as far as running it.
        return ("exit" if self.result.begun else "not-started"), f"exit code {code}"

    def _description(self, code: int | None) -> str:
        """How the process itself ended; empty if it exited as it should."""
        if self._memory.exceeded:
            return f"more than {size_text(self._memory.limit or 0)} of main memory"
        if self._timed_out:
            limit = f"{self._timeout:g} s"
            stuck = "" if code is not None else f"; process {self._process.pid} cannot be killed"
            return f"did not exit{stuck}" if self.result.finished else limit + stuck
        if code is not None and code < 0:
            return signal_name(-code)
        return f"exit code {code}" if code else ""
