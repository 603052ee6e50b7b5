"""What a person writes around a log, or instead of one."""

from __future__ import annotations

from whygpu.model.log import Log
from whygpu.tables.topics import Topic, topics_in

_MOST_LINES = 20
"""People say at the beginning what is wrong."""


def complaints(log: Log, *wanted: Topic) -> list[int]:
    """The lines in which somebody names one of these symptoms."""
    symptoms = {topic.says for topic in wanted}
    return [
        line.number
        for line in log.lines[:_MOST_LINES]
        if line.level == "none"
        and any(topic.says in symptoms for topic in topics_in(line.text)[:1])
    ]
