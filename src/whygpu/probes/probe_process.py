"""One probe's process: what it says is its result, and its end is part of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from whygpu.model.probe import Probe, ProbeEnd, ProbeName
from whygpu.model.units import size_text
from whygpu.probes.child import ChildProcess, Words, signal_name
from whygpu.probes.result import Result

HARNESS = (Path(__file__).parent / "scripts" / "harness.py").resolve()
TEARDOWN_SECONDS = 10.0
"""How long a finished probe may take to exit."""


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
    ) -> None:
        """Start it; raises OSError when the interpreter cannot be started."""
        self.name = name
        self.result = Result(name)

        def words(descriptor: int) -> Words:
            # -u: what was printed before a crash is not lost. -B: nothing is written into the
            # target, least of all by root.
            return [target_python, "-u", "-B", HARNESS, script, str(descriptor), str(timeout)]

        super().__init__(words, timeout=timeout, environ=environ, memory_limit=memory_limit)

    def take(self, line: bytes) -> None:
        self.result.take(line)

    def rest(self) -> float | None:
        done = self.result.finished or self.result.exception is not None
        return TEARDOWN_SECONDS if done else None

    def end(self) -> Probe:
        """Read what is left, close, and say how it went."""
        seconds = time.monotonic() - self._started
        self.read_rest()
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
        if self._memory.exceeded:
            return "over-limit", stopped
        if self._timed_out and self._at_work:
            return "cut-short", self._at_work
        if self._timed_out:
            return "timed-out", stopped
        if code is not None and code < 0:
            return "signal", stopped
        # Not one word from the harness: the interpreter did not get as far as running it.
        return ("exit" if self.result.begun else "not-started"), f"exit code {code}"

    def _description(self, code: int | None) -> str:
        """How the process itself ended, in words; empty when it simply exited."""
        if self._memory.exceeded:
            return f"more than {size_text(self._memory.limit or 0)} of main memory"
        if self._timed_out:
            limit = f"{self._timeout:g} s"
            stuck = "" if code is not None else f"; process {self._process.pid} cannot be killed"
            return f"did not exit{stuck}" if self.result.finished else limit + stuck
        if code is not None and code < 0:
            return signal_name(-code)
        return f"exit code {code}" if code else ""
