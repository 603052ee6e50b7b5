"""The form of a row of `tables/lab_proofs.py`."""

from __future__ import annotations

from typing import Literal, NamedTuple

LabResult = Literal["mends", "eases", "shows", "not-here", "no-command"]


class LabProof(NamedTuple):
    """The result of one remedy of a root cause in a scenario of the fault lab."""

    scenario: str
    cause: str
    subject: str
    number: int
    """The place of the remedy among those of the cause, from 1."""
    text: str
    """The remedy's first sentence."""
    result: LabResult
    detail: str
    """What was installed, or why the remedy was not carried out."""
