"""Builds a value of any type of the model from its type, with the same text in every free field.

For tests of properties of every field, including fields that are added later.
"""

from __future__ import annotations

import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from whygpu.model.codec import hints, is_record
from whygpu.model.observed import Known

T = TypeVar("T")


def sample(kind: type[T], text: str) -> T:
    value: T = _sample(kind, text)
    return value


def _sample(kind: Any, text: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        observed = next((each for each in arguments if get_origin(each) is Known), None)
        if observed is not None:
            return Known(_sample(get_args(observed)[0], text), text)
        return _sample(next(each for each in arguments if each is not type(None)), text)
    if origin is Literal:
        return arguments[0]
    if origin is tuple:
        items = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return tuple(_sample(item, text) for item in items)
    if is_record(kind):
        return kind(*(_sample(hint, text) for _, hint in hints(kind)))
    if origin is dict:
        return {"text": text}
    return {str: text, int: 1, float: 1.0, bool: True}.get(kind, text)
