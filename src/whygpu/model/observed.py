"""What is known about one fact: it was seen, it is absent, or it could not be checked.

Classes of our own: named tuples cannot be generic in Python 3.10, and importing dataclasses takes
some 3 % of the time of `whygpu check --no-probe`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar, Union

T = TypeVar("T")
U = TypeVar("U")


class _Guarded:
    """Never changes, and is equal to another with the same values. Has no truth value, so that no
    `if` can mistake "could not check" for "fine"."""

    __slots__: tuple[str, ...] = ()

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        values = zip(self.__slots__, self._values(), strict=True)
        inside = ", ".join(f"{name}={value!r}" for name, value in values)
        return f"{type(self).__name__}({inside})"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._values()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: it never changes")

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} has no truth value: "
            "match on Known, Absent and Unknown, or use need()"
        )


class Known(_Guarded, Generic[T]):
    """The fact was seen; `source` says where, so that a user can check it."""

    __slots__ = __match_args__ = ("value", "source")
    value: T
    source: str

    def __init__(self, value: T, source: str) -> None:
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "source", source)


class Absent(_Guarded):
    """`source` was checked, and the fact is not there."""

    __slots__ = __match_args__ = ("source",)
    source: str

    def __init__(self, source: str) -> None:
        object.__setattr__(self, "source", source)


class Unknown(_Guarded):
    """The fact could not be checked, for this `reason`."""

    __slots__ = __match_args__ = ("reason",)
    reason: str

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "reason", reason)


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
