"""Converts records to JSON values and back. A value that does not fit its type is an error."""

from __future__ import annotations

import json
import types
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.outside_text import excerpt, one_line, printable

T = TypeVar("T")

_LARGEST = 1e30
"""No number in these records is larger. Infinity and NaN are not valid JSON."""
_LONGEST_PLACE = 200


class DecodeError(ValueError):
    """A JSON value is not what its type says; `path` is where."""

    def __init__(self, path: str, expected: str, received: Any) -> None:
        # A key of the content may be as long as the content.
        place = excerpt(one_line(path), _LONGEST_PLACE) or "top level"
        super().__init__(f"{place}: expected {expected}, received {shown(received)}")


_MISSING = object()
"""What is received for a field that is not there."""
_PLAIN = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
"""Types as a reader of JSON knows them."""


def shown(received: Any) -> str:
    """A received value, for a message. Of a list or an object only that: it may be
    large, deep and private."""
    if received is _MISSING:
        return "nothing"
    if isinstance(received, dict):
        return "an object"
    if isinstance(received, list):
        return "a list" if received else "an empty list"
    if isinstance(received, str):
        return json.dumps(excerpt(received, 60))
    return excerpt(json.dumps(received, default=repr), 60)


def _words_of(kind: Any) -> str:
    return _PLAIN.get(kind) or str(getattr(kind, "__name__", kind))


def encode(value: Any) -> Any:
    """A JSON value. Known, Absent and Unknown become objects with that word as a key."""
    if isinstance(value, Known):
        return {"known": encode(value.value), "source": value.source}
    if isinstance(value, Absent):
        return {"absent": value.source}
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, tuple):
        items = [encode(item) for item in value]
        names = getattr(value, "_fields", None)
        return items if names is None else dict(zip(names, items, strict=True))
    return value


def decode(kind: type[T], data: Any, path: str = "") -> T:
    """The value of type `kind` that encode() would have turned into `data`."""
    result: T = _decode(kind, data, path)
    return result


def decode_parts(kind: type[T], data: dict[str, Any], path: str = "") -> tuple[T, tuple[str, ...]]:
    """A record whose fields are decoded one by one, and what is wrong with those that cannot be.

    This is for data that a process of the user sends. All fields of the record have defaults. A
    broken field gets its default and does not affect the others. Fields that the record does not
    have are ignored. In nested records, a field that has a default may be missing.
    """
    found: dict[str, Any] = {}
    errors: list[str] = []
    record: Any = kind
    for name, hint in hints(record):
        if name in data:
            try:
                found[name] = _decode(hint, _completed(hint, data[name]), f"{path}{name}")
            except (DecodeError, RecursionError) as error:
                errors.append(str(error))
    return kind(**found), tuple(errors)


def _completed(kind: Any, data: Any) -> Any:
    """The data with missing fields filled in from their defaults, at any depth."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        records = [member for member in arguments if is_record(member)]
        return _completed(records[0], data) if len(records) == 1 else data
    if is_record(kind) and isinstance(data, dict):
        defaults = {name: encode(value) for name, value in kind._field_defaults.items()}
        known = dict(hints(kind))
        given = {
            name: _completed(known[name], value) if name in known else value
            for name, value in data.items()
        }
        return {**defaults, **given}
    if origin is tuple and arguments[1:] == (Ellipsis,) and isinstance(data, list):
        return [_completed(arguments[0], item) for item in data]
    if origin is dict and isinstance(data, dict):
        return {name: _completed(arguments[1], value) for name, value in data.items()}
    return data


def is_record(kind: Any) -> bool:
    """Whether a type is one of the model's: a named tuple."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


@cache
def hints(kind: type) -> tuple[tuple[str, Any], ...]:
    """Field names and resolved types of a record, in order."""
    resolved = get_type_hints(kind)
    return tuple((name, resolved[name]) for name in kind._fields)  # type: ignore[attr-defined]


@cache
def vocabulary(kind: Any) -> frozenset[str]:
    """Every word that has a fixed meaning somewhere in a type."""
    if get_origin(kind) is Literal:
        return frozenset(word for word in get_args(kind) if isinstance(word, str))
    parts = [hint for _, hint in hints(kind)] if is_record(kind) else get_args(kind)
    return frozenset().union(*(vocabulary(part) for part in parts))


def _decode(kind: Any, data: Any, path: str) -> Any:
    if kind is Any:
        return data
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(kind, data, path)
    if origin is Literal:
        # An unknown word is an error: a state from a later version must not pass as a known one.
        if data not in get_args(kind):
            raise DecodeError(path, f"one of {', '.join(map(str, get_args(kind)))}", data)
        return data
    if origin is tuple:
        return _decode_tuple(kind, data, path)
    if origin is dict:
        return _decode_dict(kind, data, path)
    if is_record(kind):
        return _decode_record(kind, data, path)
    if kind in (int, float) and type(data) in (int, kind) and not abs(data) < _LARGEST:
        raise DecodeError(path, "a number of a possible size", data)
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is not kind:
        raise DecodeError(path, _words_of(kind), data)
    return printable(data) if kind is str else data


def _decode_union(kind: Any, data: Any, path: str) -> Any:
    members = get_args(kind)
    known = next((member for member in members if get_origin(member) is Known), None)
    if known is None:
        return _decode(_member(members, data, path), data, path)
    (inner,) = get_args(known)
    return decode_observed(inner, data, path)


def _member(members: tuple[Any, ...], data: Any, path: str) -> Any:
    """Which of a union's types a value is of; several records are told apart by their `kind`."""
    if data is None and type(None) in members:
        return type(None)
    rest = [member for member in members if member is not type(None)]
    if len(rest) == 1:
        return rest[0]
    records = [member for member in rest if is_record(member)]
    if not isinstance(data, dict):
        wanted = tuple if isinstance(data, list) else type(data)
        plain = [member for member in rest if member not in records]
        found = [member for member in plain if wanted in (member, get_origin(member))] or plain
    else:
        found = [record for record in records if len(records) == 1 or _is_kind(record, data)]
    if not found:
        raise DecodeError(path, "one of " + ", ".join(map(_words_of, rest)), data)
    return found[0]


def _is_kind(record: Any, data: dict[str, Any]) -> bool:
    return data.get("kind") in get_args(dict(hints(record)).get("kind"))


def decode_observed(inner: Any, data: Any, path: str = "") -> Observed[Any]:
    """Known, Absent or Unknown, where a known value is of the type `inner`."""
    if isinstance(data, dict):
        if data.keys() == {"known", "source"}:
            return Known(
                _decode(inner, data["known"], f"{path}.known"),
                _decode(str, data["source"], f"{path}.source"),
            )
        if data.keys() == {"absent"}:
            return Absent(_decode(str, data["absent"], f"{path}.absent"))
        if data.keys() == {"unknown"}:
            return Unknown(_decode(str, data["unknown"], f"{path}.unknown"))
    raise DecodeError(path, '{"known", "source"}, {"absent"} or {"unknown"}', data)


def _decode_tuple(kind: Any, data: Any, path: str) -> Any:
    if not isinstance(data, list):
        raise DecodeError(path, "a list", data)
    arguments = get_args(kind)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if len(arguments) != len(data):
        raise DecodeError(path, f"a list of {len(arguments)}", data)
    pairs = enumerate(zip(arguments, data, strict=True))
    return tuple(_decode(argument, item, f"{path}[{i}]") for i, (argument, item) in pairs)


def _decode_dict(kind: Any, data: Any, path: str) -> Any:
    """JSON allows only strings as keys."""
    if not isinstance(data, dict):
        raise DecodeError(path, "an object", data)
    _, inner = get_args(kind)
    return {printable(key): _decode(inner, value, f"{path}.{key}") for key, value in data.items()}


def _decode_record(kind: type, data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise DecodeError(path, f"an object ({kind.__name__})", data)
    expected = dict(hints(kind))
    for name in data:
        if name not in expected:
            raise DecodeError(
                f"{path}.{name}".lstrip("."), f"no such field in {kind.__name__}", data[name]
            )
    for name in expected:
        if name not in data and not _came_later(kind, name):
            raise DecodeError(f"{path}.{name}".lstrip("."), "a value", _MISSING)
    return kind(
        **{
            name: _decode(hint, data[name], f"{path}.{name}".lstrip("."))
            for name, hint in expected.items()
            if name in data
        }
    )


def _came_later(kind: Any, name: str) -> bool:
    """Whether a missing field was added after older snapshots; its default is then Unknown, or
    Absent if older versions could not have it."""
    return isinstance(kind._field_defaults.get(name), Unknown | Absent)
