"""A piece of the user's work, and how the process that did it came to its end."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

WhatKind = Literal["model-file", "function", "script", "noted"]


class What(NamedTuple):
    """What the user named: a Keras model's file, a function of a file, or a script.

    `noted` is a model that a program left when memory ran out.
    """

    kind: WhatKind
    path: str
    """Absolute: a worker may run in another folder."""
    name: str = ""
    """Of the function."""

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else self.path


TaskEnding = Literal[
    "finished", "exception", "timed-out", "over-limit", "signal", "exit", "not-started"
]


class TaskEnd(NamedTuple):
    ended: TaskEnding
    how: str
    """The exception, the signal's name, the limit of time or memory; empty when it finished."""
    messages: tuple[dict[str, Any], ...]
    """What the task sent, in order; kept however it ended."""
    error_text: str
    """The two ends of what it printed."""
    traceback: str
    """Of the exception that ended it; empty where none did."""
    seconds: float
    peak_host_bytes: int
    """The largest resident memory that was seen of it."""

    def sent(self, kind: str) -> tuple[dict[str, Any], ...]:
        return tuple(message for message in self.messages if message["kind"] == kind)
