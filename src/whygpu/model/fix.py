"""What `fix` found out: the steps that repair an environment, and what they did to a copy of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Remedy
from whygpu.model.report import Report
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

Result = Literal["works", "no-effect", "other-fault", "failed", "prevented"]
"""What a step did to the copy: the fault is gone; it is still there; another came, or something is
no longer known; the command failed; no network or no space, so it may well work elsewhere."""


class FixStep(NamedTuple):
    """One remedy of one finding."""

    code: str
    cause: str
    subject: str
    remedy: Remedy
    by_hand: str = ""
    """Why a person must do it; empty if whygpu can."""


class Attempt(NamedTuple):
    """A step that was carried out in the copy."""

    step: FixStep
    result: Result
    detail: str
    """The causes that are there afterwards, or the end of the command's output."""
    seconds: float
    download_bytes: int | None = None
    """What the installer downloaded for it, if it said so beforehand."""


class CopyFacts(NamedTuple):
    """The cost of the copy."""

    files: int
    size_bytes: int
    copied_bytes: int
    """What it takes on the disk; the rest of the files are linked."""
    free_bytes: int
    """Free space before the copy was made."""
    seconds: float
    outside: tuple[str, ...] = ()
    """Folders that are links to other places; in the copy they are folders."""


class Applied(NamedTuple):
    """The change of the real environment."""

    saved_in: str
    """The folder with the environment as it was before."""
    activation: str = ""
    """The file that now sets variables; empty if none were needed."""


@shows_itself
class FixAnswer(NamedTuple):
    environment: str
    """The folder of the environment."""
    before: Report
    steps: tuple[FixStep, ...]
    """What repairs the environment, in order; proven if `after` is there."""
    by_hand: tuple[FixStep, ...]
    """What a person must do."""
    refused: str = ""
    """Why nothing was tried, or why the steps were not applied."""
    copy: CopyFacts | None = None
    attempts: tuple[Attempt, ...] = ()
    after: Report | None = None
    """The diagnosis of the copy with the steps carried out, or of the environment if applied."""
    applied: Applied | None = None
    options: tuple[str, ...] = ()
    """The words that name this environment and the causes on a command line."""

    @property
    def standing(self) -> Standing:
        now = self.before if self.applied is None or self.after is None else self.after
        if self.refused and now.standing != "fine":
            return "unknown" if self.after is None else "wrong"
        if not self.steps and any(item.result == "prevented" for item in self.attempts):
            return "unknown"
        return now.standing

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]


@shows_itself
class Undone(NamedTuple):
    """An environment that is again as it was before a fix."""

    environment: str
    undone: tuple[str, ...]
    """The commands of the fix."""
    applied_at: str
    """When the fix was applied, as ISO 8601."""
    changed_since: tuple[str, ...] = ()
    """What had changed since then, and was lost with it."""
    not_restored: tuple[str, ...] = ()
    """Files that something has written into since then. The saved environment shared them."""
