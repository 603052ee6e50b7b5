"""What `whygpu history` keeps of each check and each run."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.differences import DiffAnswer

RecordedVerb = Literal["check", "run"]


class PastRun(NamedTuple):
    """One check or run, without the snapshot that was kept with it."""

    number: int
    """Counts up, also after older ones were removed."""
    at: str
    """The time in UTC: 2026-11-11T09:30:00Z."""
    verb: RecordedVerb
    target: str
    """The interpreter."""
    program: str
    """What `run` ran, without its arguments: python train.py. Empty for a check."""
    verdict: str
    """gpu, cpu, broken, no-gpu or unknown; for a run, the device that it used."""
    summary: str
    exit_code: int
    good: bool
    """It worked: later failures are compared with it."""
    here: bool
    """On this machine. Nodes of a cluster share the home of a user, and with it the history."""


class History(NamedTuple):
    recording: bool
    place: str
    """The database."""
    runs: tuple[PastRun, ...]
    """The newest first."""
    recorded: int
    """How many there are, also those that are not listed."""
    size_bytes: int


class SinceGood(NamedTuple):
    """A failure, compared with the last time that it worked."""

    run: PastRun
    answer: DiffAnswer
