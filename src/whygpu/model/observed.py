"""What is known about one fact: it was seen, it is absent, or it could not be checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar, Union

T = TypeVar("T")
U = TypeVar("U")


class _Guarded:
    """Has no truth value, so that no `if` can mistake "could not check" for "fine"."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} has no truth value: "
            "match on Known, Absent and Unknown, or use need()"
        )


@dataclass(frozen=True, slots=True)
class Known(_Guarded, Generic[T]):
    """The fact was seen; `source` says where, so that a user can check it."""

    value: T
    source: str


@dataclass(frozen=True, slots=True)
class Absent(_Guarded):
    """`source` was checked, and the fact is not there."""

    source: str


@dataclass(frozen=True, slots=True)
class Unknown(_Guarded):
    """The fact could not be checked, for this `reason`."""

    reason: str


Observed = Union[Known[T], Absent, Unknown]


class Undetermined(Exception):
    """A fact that a judgement needs is unknown."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotApplicable(Exception):
    """The judgement does not apply: its subject does not exist on this machine."""


def need(observed: Observed[T]) -> T:
    """The value. Raises Undetermined if it is unknown and NotApplicable if it is absent."""
    if isinstance(observed, Known):
        return observed.value
    if isinstance(observed, Absent):
        raise NotApplicable(observed.source)
    raise Undetermined(observed.reason)


def need_or(observed: Observed[T], absent: U) -> T | U:
    """Like need(), but returns `absent` if the fact is absent."""
    return absent if isinstance(observed, Absent) else need(observed)


def transform(observed: Observed[T], change: Callable[[T], U]) -> Observed[U]:
    """Apply `change` to a known value and keep its source. Absent and Unknown stay as they are."""
    if isinstance(observed, Known):
        return Known(change(observed.value), observed.source)
    return observed
