"""What we know about one fact: it was seen, it is not there, or we could not look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar, Union

T = TypeVar("T")
U = TypeVar("U")


class _Guarded:
    """Refuses truth, so that "could not look" can never be taken for "fine" by accident."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} has no truth value: "
            "match on Known, Absent and Unknown, or use need()"
        )


@dataclass(frozen=True, slots=True)
class Known(_Guarded, Generic[T]):
    """The fact was seen; `source` says where, in words a user can follow up."""

    value: T
    source: str


@dataclass(frozen=True, slots=True)
class Absent(_Guarded):
    """We looked in `source`, and it is not there."""

    source: str


@dataclass(frozen=True, slots=True)
class Unknown(_Guarded):
    """We could not look, because of `reason`."""

    reason: str


Observed = Union[Known[T], Absent, Unknown]


class Undetermined(Exception):
    """A fact that a judgement needs is unknown."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotApplicable(Exception):
    """The judgement has no object here: what it is about does not exist on this machine."""


def need(observed: Observed[T]) -> T:
    """The value, or the end of the judgement: undetermined if unknown, not applicable if absent."""
    if isinstance(observed, Known):
        return observed.value
    if isinstance(observed, Absent):
        raise NotApplicable(observed.source)
    raise Undetermined(observed.reason)


def need_or(observed: Observed[T], absent: U) -> T | U:
    """Like need(), but absence is an answer of its own."""
    return absent if isinstance(observed, Absent) else need(observed)


def transform(observed: Observed[T], change: Callable[[T], U]) -> Observed[U]:
    """Apply `change` to a known value and keep its source; absence and ignorance pass through."""
    if isinstance(observed, Known):
        return Known(change(observed.value), observed.source)
    return observed
