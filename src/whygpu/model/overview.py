"""The answer of `whygpu report`: what somebody else needs to know about a machine."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.holders import HoldersReport
from whygpu.model.install_plan import PlanAnswer
from whygpu.model.report import Report
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing


@shows_itself
class Overview(NamedTuple):
    """Three answers that follow from one look at the machine."""

    check: Report
    memory: HoldersReport
    plan: PlanAnswer
    """For the frameworks that are installed, or TensorFlow if there is none."""

    @property
    def standing(self) -> Standing:
        """That of the check: the others say what could be done."""
        return self.check.standing

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
