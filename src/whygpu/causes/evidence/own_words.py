"""What a person writes around a log, or instead of one."""

from __future__ import annotations

from whygpu.model.log import Log
from whygpu.tables.sentences import FEW_LINES, asks_something, is_of_a_person
from whygpu.tables.topics import Topic, topics_in
from whygpu.tables.topics_asked import ABOUT_GPU, HOW_WITHOUT_GPU, WHICH_FIT

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


_OF_NO_GPU_IN_USE = frozenset((ABOUT_GPU, HOW_WITHOUT_GPU, WHICH_FIT))


def of_a_gpu_in_use(log: Log) -> list[int]:
    """The lines in which somebody complains of a GPU that is in use, or asks about it, whatever it
    is; in a text of few lines, each line that is no question about something else."""
    few = len(log.lines) <= FEW_LINES
    return [
        line.number
        for line in log.lines[:_MOST_LINES]
        if line.level == "none"
        and (few or is_of_a_person(line.text))
        and ((topics := topics_in(line.text)) or (few and not asks_something(line.text)))
        and not _OF_NO_GPU_IN_USE.intersection(topics)
    ]
