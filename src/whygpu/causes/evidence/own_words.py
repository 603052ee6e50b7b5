"""What a person writes around a log, or instead of one."""

from __future__ import annotations

from whygpu.model.log import Log
from whygpu.tables.complaints import complaint_in
from whygpu.tables.words_of_people import Complaint

_MOST_LINES = 20
"""People say at the beginning what is wrong."""


def complaints(log: Log, *wanted: Complaint) -> list[int]:
    """The lines in which somebody names one of these symptoms."""
    symptoms = {complaint.says for complaint in wanted}
    return [
        line.number
        for line in log.lines[:_MOST_LINES]
        if line.level == "none"
        and (found := complaint_in(line.text)) is not None
        and found.says in symptoms
    ]
