"""Whatever two snapshots hold, comparing them gives an answer that does not contradict itself."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.test_recorded_machines import RECORDED
from whygpu.causes import machine_catalogue
from whygpu.differences.answering import Named, answer
from whygpu.model.codec import DecodeError, decode
from whygpu.model.snapshot import SCHEMA, Snapshot

DATA = [json.loads(path.read_text()) for path in RECORDED]


def damaged(data: Any, chance: random.Random) -> Any:
    """A copy with facts unknown, absent, doubled, removed, swapped or set to other words."""
    if isinstance(data, dict):
        if {"known"} < data.keys() and chance.random() < 0.03:
            return chance.choice([{"unknown": "damaged"}, {"absent": "damaged"}])
        return {name: damaged(value, chance) for name, value in data.items()}
    if isinstance(data, list):
        items = [damaged(item, chance) for item in data if chance.random() > 0.02]
        if items and chance.random() < 0.05:
            items.insert(chance.randrange(len(items)), chance.choice(items))
        if chance.random() < 0.05:
            chance.shuffle(items)
        return items
    if isinstance(data, str) and chance.random() < 0.01:
        return chance.choice(["", "-1", "0", "9.9.9", "\x1b[0m", "a/b", "~", "x" * 5000])
    if type(data) is int and chance.random() < 0.02:
        return chance.choice([0, -1, 7, 10**18])
    return data


def machines(count: int) -> list[Snapshot]:
    chance = random.Random(11)
    found: list[Snapshot] = []
    while len(found) < count:
        try:
            # A file with another schema is refused when it is read.
            data = {**damaged(chance.choice(DATA), chance), "schema": SCHEMA}
            found.append(decode(Snapshot, data))
        except DecodeError:
            continue
    return found


@pytest.mark.slow
def test_any_two_machines() -> None:
    some = machines(24)
    for before, after in zip(some[::2], some[1::2], strict=True):
        found = answer(Named("before", before), Named("after", after), machine_catalogue())
        assert found.headline
        count = len(found.differences)
        for reason in found.reasons:
            assert bool(reason.sets) != bool(reason.unexplained)
            places = [place for each in (*reason.sets, reason.suspects) for place in each]
            assert all(0 <= place < count for place in places)
            assert len(set(places)) == len(places)
        for item in found.differences:
            assert item.before != item.after
            assert item.places
        assert repr(found).isprintable()


@pytest.mark.slow
def test_a_machine_and_itself() -> None:
    for machine in machines(8):
        found = answer(Named("a", machine), Named("b", machine), machine_catalogue())
        assert found.differences == ()
        assert found.reasons == ()
        assert found.standing == "answered"
