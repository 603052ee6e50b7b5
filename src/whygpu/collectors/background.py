"""Runs a slow query in a separate thread."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Starts at once. result() waits for the answer, or raises the exception of the query.

    concurrent.futures would do the same, but takes five milliseconds to import. The thread does
    not keep the process alive: a user who interrupts whygpu does not wait for the answer.
    """

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._answer: list[T] = []
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._ask, daemon=True)
        self._thread.start()

    def result(self) -> T:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._answer[0]

    def _ask(self) -> None:
        try:
            self._answer.append(self._question())
        except BaseException as error:
            self._failure = error
