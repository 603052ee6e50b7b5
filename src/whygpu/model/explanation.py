"""What a log means: the answer of `whygpu explain`."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Evidence, Finding, Remedy
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing
from whygpu.model.target import PLAIN_PIP, Installer

LogVerdict = Literal["found", "nothing-wrong", "not-gpu", "unknown"]


STANDARD_ERROR = "standard error"
"""The name of a log that is what a program under `run` wrote there."""

NOTHING_REPORTED = "nothing in it reports a failure, a GPU or work being done"
"""What is understood of a log in which nothing can be pointed at."""


class Guidance(NamedTuple):
    """What can be said if no cause was found."""

    understood: str
    """What the log does say: a sentence without a full stop."""
    candidates: tuple[str, ...] = ()
    """What it could be, most common first."""
    ask: str | None = None
    """The question whose answer would decide; None if nothing is open."""
    steps: tuple[Remedy, ...] = ()
    """What to do next."""
    to_question: bool = False
    """Whether somebody asks how something is done, so that the steps are the answer."""


@shows_itself
class Explanation(NamedTuple):
    verdict: LogVerdict
    headline: str
    """The verdict as the one sentence an answer starts with."""
    root_causes: tuple[Finding, ...]
    """Most likely first. More than one if the log alone does not decide, or if several things are
    wrong."""
    symptoms: tuple[Finding, ...]
    """Findings that follow from a root cause, or do not matter compared with it."""
    noise: tuple[Finding, ...]
    """Lines that look like a problem but are harmless."""
    unexplained: tuple[Evidence, ...]
    """Lines that look like a problem and that no cause explains."""
    crashed: tuple[str, ...] = ()
    """Detectors that failed, each with its error: bugs in whygpu."""
    name: str = ""
    """The path of the file; empty for standard input and text."""
    lines_read: int = 0
    installer: Installer = PLAIN_PIP
    """The installer of the machine that was checked together with the log, for its commands."""
    guidance: Guidance | None = None
    """Always present if the verdict is unknown. For a failure unrelated to the GPU, present if
    there is more to say than the error message itself."""
    unread: str = ""
    """Why a part of the log was not read; empty if all of it was read."""
    on_cpu: bool = False
    """Nothing is wrong, but the log says that the work was done on the CPU, and why."""

    @property
    def reports_nothing(self) -> bool:
        """The log does not show why the program failed, or what it did."""
        understood = self.guidance.understood if self.guidance is not None else ""
        return self.verdict == "unknown" and understood == NOTHING_REPORTED

    @property
    def standing(self) -> Standing:
        if self.verdict in ("found", "not-gpu"):
            return "wrong"
        # A detector that failed may be the one that would have found something.
        if self.crashed or self.verdict == "unknown":
            return "unknown"
        return "answered" if self.on_cpu else "fine"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
