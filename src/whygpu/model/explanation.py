"""What a log means: the answer of `whygpu explain`."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Evidence, Finding, Remedy
from whygpu.model.short_repr import short_repr
from whygpu.model.standing import EXIT_CODES, Standing
from whygpu.model.target import PLAIN_PIP, Installer

LogVerdict = Literal["found", "nothing-wrong", "not-gpu", "unknown"]


class Guidance(NamedTuple):
    """What can be told where no cause was found."""

    understood: str
    """What the log does say, as a sentence without its end."""
    candidates: tuple[str, ...] = ()
    """What it could be, most common first."""
    ask: str | None = None
    """The question that would decide; None where nothing is open."""
    steps: tuple[Remedy, ...] = ()
    """What to do next."""


class Explanation(NamedTuple):
    verdict: LogVerdict
    headline: str
    """The verdict as the one sentence an answer starts with."""
    root_causes: tuple[Finding, ...]
    """Most likely first. More than one where the log alone does not decide, or where several
    things are wrong."""
    symptoms: tuple[Finding, ...]
    """What follows from a root cause, or does not matter beside it."""
    noise: tuple[Finding, ...]
    """Lines that look like trouble and are none."""
    unexplained: tuple[Evidence, ...]
    """Lines that look like trouble and that nothing here accounts for."""
    crashed: tuple[str, ...] = ()
    """Detectors that failed, each with its error: bugs in whygpu."""
    name: str = ""
    """Of the file; empty for standard input and text."""
    lines_read: int = 0
    installer: Installer = PLAIN_PIP
    """Of the machine that was looked at beside the log, for the commands of its remedies."""
    guidance: Guidance | None = None
    """Always there where the verdict is unknown; for a failure that is not the GPU's, where there
    is more to say than its own words."""
    unread: str = ""
    """Why a part of the log was not read; empty where all of it was."""
    on_cpu: bool = False
    """Nothing is wrong, and the log says that the work was done on the CPU, and why."""

    def __repr__(self) -> str:
        return short_repr(self)

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
