"""How the process of a task ended, and the messages that it sent."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

from whygpu.model.task_wire import ExceptionMessage, TaskMessage

TaskEnding = Literal[
    "finished",
    "exception",
    "timed-out",
    "over-limit",
    "hopeless-request",
    "signal",
    "exit",
    "not-started",
]
"""`hopeless-request`: it asked a GPU's allocator for more than that may ever have, and was ended
instead of waiting for it."""
Message = TypeVar("Message", bound=TaskMessage)


class TaskEnd(NamedTuple):
    ended: TaskEnding
    how: str
    """The exception, the signal's name, the limit of time or memory; empty if it finished."""
    messages: tuple[TaskMessage, ...] = ()
    """What the task sent, in order; kept however it ended."""
    error_text: str = ""
    """The beginning and the end of what it printed."""
    exception: ExceptionMessage | None = None
    """What ended it, if it ended as "exception"."""
    seconds: float = 0.0
    peak_host_bytes: int = 0
    """The largest resident memory that was seen of it."""

    def sent(self, kind: type[Message]) -> tuple[Message, ...]:
        """The messages of this type, in order."""
        return tuple(message for message in self.messages if isinstance(message, kind))

    @property
    def traceback(self) -> str:
        return self.exception.traceback if self.exception is not None else ""
