"""Snapshots that are wrong in random places, and still snapshots."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st

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


@st.composite
def mutants(draw: st.DrawFn, kind: Any, seeds: list[Any]) -> Any:
    """One of the seeds (JSON values of `kind`) with a few of its parts changed."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 8))):
        data = _mutated(draw, kind, data)
    return data


def _mutated(draw: st.DrawFn, kind: Any, data: Any) -> Any:
    """Go down to some part of the value, and change it there."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _mutated_union(draw, kind, data)
    if origin is Literal:
        return draw(st.sampled_from(get_args(kind)))
    if is_record(kind):
        name, inner = draw(st.sampled_from(hints(kind)))
        # The version of the format is not a fact about the machine.
        return data if name == "schema" else {**data, name: _mutated(draw, inner, data[name])}
    if origin is tuple:
        return _mutated_items(draw, get_args(kind), data)
    if kind is str:
        return draw(st.sampled_from((*TEXTS, data[: len(data) // 2])))
    if kind is bool:
        return not data
    return kind(draw(st.sampled_from(NUMBERS)))


def _mutated_union(draw: st.DrawFn, kind: Any, data: Any) -> Any:
    members = get_args(kind)
    known = next((member for member in members if get_origin(member) is Known), None)
    if known is None:
        inner = next(member for member in members if member is not types.NoneType)
        return None if data is None or draw(st.booleans()) else _mutated(draw, inner, data)
    what = draw(st.sampled_from(("inside", "inside", "inside", "unknown", "absent")))
    if what != "inside":
        return {what: draw(st.sampled_from(("permission denied", "some place")))}
    if "known" in data:
        return {**data, "known": _mutated(draw, get_args(known)[0], data["known"])}
    return data


def _mutated_items(draw: st.DrawFn, arguments: tuple[Any, ...], data: list[Any]) -> list[Any]:
    if not data:
        return data
    place = draw(st.integers(0, len(data) - 1))
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        what = draw(st.sampled_from(("inside", "inside", "removed", "twice", "none")))
        if what == "none":
            return []
        if what != "inside":
            return (
                data[:place] + data[place : place + 1] * 2 * (what == "twice") + data[place + 1 :]
            )
        inner = arguments[0]
    else:
        inner = arguments[place]
    return [*data[:place], _mutated(draw, inner, data[place]), *data[place + 1 :]]
