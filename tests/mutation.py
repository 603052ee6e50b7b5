"""Snapshots that are wrong in random places, and still snapshots."""

from __future__ import annotations

import types
from random import Random
from typing import Any, Literal, Union, get_args, get_origin

from whygpu.model.codec import hints, is_record
from whygpu.model.observed import Known

TEXTS = (
    "",
    "0",
    "-1",
    "9,0,0",
    "12.9.2.10",
    "999999999999.0",
    "not a version",
    "sm_90",
    "cuda",
    "tensorflow",
    "libcudnn.so.9",
    "/home/somebody/[bold]x[/bold]/lib\nlibcuda.so.1: cannot open",
    "日本 ✓ " * 30,
)
NUMBERS = (-1, 0, 1, 2, 80, 2**63)


MOST_CHANGES = 8


def mutant(random: Random, kind: Any, seeds: list[Any]) -> Any:
    """One of the seeds (complete JSON values of `kind`) with a few of its parts changed."""
    data = random.choice(seeds)
    for _ in range(random.randint(1, MOST_CHANGES)):
        data = _mutated(random, kind, data)
    return data


def _mutated(random: Random, kind: Any, data: Any) -> Any:
    """Go down to some part of the value, and change it there."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _mutated_union(random, kind, data)
    if origin is Literal:
        return random.choice(get_args(kind))
    if is_record(kind):
        name, inner = random.choice(hints(kind))
        # The version of the format is not a fact about the machine.
        return data if name == "schema" else {**data, name: _mutated(random, inner, data[name])}
    if origin is tuple:
        return _mutated_items(random, get_args(kind), data)
    if kind is str:
        return random.choice((*TEXTS, data[: len(data) // 2]))
    if kind is bool:
        return not data
    return kind(random.choice(NUMBERS))


def _mutated_union(random: Random, kind: Any, data: Any) -> Any:
    members = get_args(kind)
    known = next((member for member in members if get_origin(member) is Known), None)
    if known is None:
        inner = next(member for member in members if member is not types.NoneType)
        return None if data is None or random.random() < 0.5 else _mutated(random, inner, data)
    what = random.choice(("inside", "inside", "inside", "unknown", "absent"))
    if what != "inside":
        return {what: random.choice(("permission denied", "some place"))}
    if "known" in data:
        return {**data, "known": _mutated(random, get_args(known)[0], data["known"])}
    return data


def _mutated_items(random: Random, arguments: tuple[Any, ...], data: list[Any]) -> list[Any]:
    if not data:
        return data
    place = random.randrange(len(data))
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        what = random.choice(("inside", "inside", "removed", "twice", "none"))
        if what == "none":
            return []
        if what != "inside":
            return (
                data[:place] + data[place : place + 1] * 2 * (what == "twice") + data[place + 1 :]
            )
        inner = arguments[0]
    else:
        inner = arguments[place]
    return [*data[:place], _mutated(random, inner, data[place]), *data[place + 1 :]]
